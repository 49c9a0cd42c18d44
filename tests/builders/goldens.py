"""Texts that outputs are compared with, whole, and how they are made anew."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import pytest

_SWITCH = "REFRESH_GOLDENS"


def check(golden: Path, text: str) -> None:
    """Fail with the difference if a text is not that of the file; one that lacks fails, too."""
    if os.environ.get(_SWITCH):
        golden.write_text(text)
    old = golden.read_text() if golden.is_file() else ""
    if old != text:
        difference = unified_diff(old.splitlines(), text.splitlines(), "golden", "now", lineterm="")
        test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]
        pytest.fail("\n".join([*difference, f"To refresh: {_SWITCH}=1 python -m pytest {test}"]))
