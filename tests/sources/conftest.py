"""Fixtures of the tests of sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.sources.perf_data.reader import PerfData


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], PerfData]:
    """Write bytes to a file and open it as perf.data."""

    def make(content: bytes) -> PerfData:
        path = tmp_path / "perf.data"
        path.write_bytes(content)
        return PerfData(path)

    return make
