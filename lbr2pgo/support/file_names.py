"""Names that stand for several files: `out/{name}-{build_id}.prof`, and globs."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path

NAME, BUILD_ID = "name", "build_id"

NO_BUILD_ID = "none"
"""Stands for a program without one, in names of files and in tables."""

_UNSAFE = str.maketrans("/\0", "__")


def fields_of(path: Path) -> frozenset[str]:
    """Which of the fields stand in a path.

    >>> sorted(fields_of(Path("{name}/{build_id}.prof")))
    ['build_id', 'name']
    """
    return frozenset(field for field in (NAME, BUILD_ID) if f"{{{field}}}" in str(path))


def filled(path: Path, values: Mapping[str, str]) -> Path:
    """The path with fields replaced; what is put in never adds a folder.

    >>> filled(Path("out/{name}.prof"), {"name": "lib/x.so"})
    PosixPath('out/lib_x.so.prof')
    """
    text = str(path)
    for field, value in values.items():
        text = text.replace(f"{{{field}}}", value.translate(_UNSAFE))
    return Path(text)


def expanded(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """Paths with globs replaced by the files that they mean, by name; a file's own name is none."""
    found: list[Path] = []
    for name in map(str, paths):
        is_pattern = glob.has_magic(name) and not Path(name).exists()
        matches = sorted(glob.glob(name, recursive=True)) if is_pattern else []
        found += map(Path, matches or [name])
    return tuple(found)
