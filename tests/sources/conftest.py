"""Lets tests import `builders` (pytest's import mode keeps this tree off the path); fixtures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.sources.perf_data import PerfData

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], PerfData]:
    """Write bytes to a file and open it as perf.data."""

    def make(content: bytes) -> PerfData:
        path = tmp_path / "perf.data"
        path.write_bytes(content)
        return PerfData(path)

    return make
