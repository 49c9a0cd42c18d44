"""What fixtures that many tests share are (see `conftest.py`), and where the project stands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTBINS = ROOT / "testbins"

Compiled = Callable[..., Path]
Corpus = Callable[[str], Path]
Link = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]
Tool = Callable[[str], str]
Walk = Callable[[int], tuple[Path, Path]]


def lbr2pgo(*words: object) -> tuple[object, ...]:
    """A command of ours, for `Run`."""
    return sys.executable, "-m", "lbr2pgo", *words
