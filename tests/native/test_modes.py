"""The compiled loops against the same oracles, with bounds checked, and interpreted.

Compiled, an index out of bounds reads or writes foreign memory and may go unnoticed; with
NUMBA_BOUNDSCHECK it raises, and interpreted (NUMBA_DISABLE_JIT) types are Python's as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODES = {"bounds checked": "NUMBA_BOUNDSCHECK", "interpreted": "NUMBA_DISABLE_JIT"}
QUICK = ("test_chain_paths.py", "test_text.py", "test_words.py")


def check(mode: str, cache: Path, *tests: Path) -> None:
    # What is compiled without checks must not be taken for what is compiled with them.
    environment = {**os.environ, MODES[mode]: "1", "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("PYTEST_ADDOPTS", None)
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore:overflow:RuntimeWarning")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, tests)],
        env=environment, cwd=HERE.parent.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_some_loops(mode: str, tmp_path: Path) -> None:
    check(mode, tmp_path, *(HERE / name for name in QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_loop(mode: str, tmp_path: Path) -> None:
    files = sorted(set(HERE.glob("test_*.py")) - {Path(__file__), HERE / "test_loop_cache.py"})
    check(mode, tmp_path, *files)
