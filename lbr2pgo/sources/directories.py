"""Recordings that are directories, as `perf record --threads` makes them.

The file `data` holds the header, `data.0` and so on what each thread recorded
(perf: tools/perf/util/data.c, perf_data__create_dir, v6.1).
"""

from __future__ import annotations

import re
from pathlib import Path

HEAD = "data"
"""The file that stands for all."""
_NUMBER = re.compile(r"\.[0-9]+")


def files_of(path: Path) -> list[Path]:
    """The files of a recording: itself or, of a directory, the one with the header first."""
    if not path.is_dir():
        return [path]
    numbered = [p for p in path.glob(f"{HEAD}.*") if _NUMBER.fullmatch(p.suffix)]
    return [path / HEAD, *sorted(numbered, key=lambda p: int(p.suffix[1:]))]
