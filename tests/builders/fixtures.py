"""What fixtures that many tests share are (see `conftest.py`), and where the project stands."""

from __future__ import annotations

import subprocess
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
