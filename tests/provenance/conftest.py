from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a program and its recording."""
    shutil.copy(PIE, tmp_path / "app")
    shutil.copy(RECORDING, tmp_path / "perf.data")
    return tmp_path
