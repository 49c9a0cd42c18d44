from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left: None) -> None:
    """Every test of a command is looked at."""
