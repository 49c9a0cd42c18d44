"""Examples are looked for only where some stand: that is in one file of eight."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

Found = list[pytest.Collector]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Found, Found]:
    """See pytest: what a file is collected as."""
    found = yield
    has_examples = bool(found) and b">>>" in file_path.read_bytes()
    return [each for each in found if has_examples or type(each) is pytest.Module]
