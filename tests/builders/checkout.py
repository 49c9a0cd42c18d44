"""The project as somebody has it who has just cloned it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from builders.fixtures import ROOT


def check_out(target: Path, *, without: tuple[str, ...] = ()) -> Path:
    """What git tracks, as it is in the work tree, but for paths that begin so."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    tracked = [name for name in listed if name and not name.startswith(without or "/")]
    for name in tracked:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((ROOT / name).read_bytes())
    return target
