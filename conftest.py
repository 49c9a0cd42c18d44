"""Collecting in little time: 9,000 tests, and examples in one file of eight."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path

import pytest

Found = list[pytest.Collector]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Don't look for garbage among what is collected: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Found, Found]:
    """Look for examples only where some stand."""
    found = yield
    has_examples = bool(found) and b">>>" in file_path.read_bytes()
    return [each for each in found if has_examples or type(each) is pytest.Module]
