"""The compiled replay; what it finds is held against a plain one in test_mapping_history.py."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.counting._mapping_history import replay
from lbr2pgo.counting.mapping_history import NONE


def test_a_child_goes_on_behind_its_parent_and_execve_begins_anew() -> None:
    steps = np.array([1, 2, 1, 1, 0, 3, 1], np.uint8)  # 1 mapping, 2 fork, 3 execve
    own = np.array([0, 1, 1, 0, 0, 1, 1], np.int32)
    parents = np.array([NONE, 0, *[NONE] * 5], np.int32)
    latest = np.full(2, NONE, np.int32)
    before, last, length = (np.full(7, NONE, np.int32) for _ in range(3))
    replay(steps, own, parents, latest, before, last, length)
    assert last.tolist() == [0, 0, 2, 3, NONE, NONE, 6]
    assert before[[0, 2, 3, 6]].tolist() == [NONE, 0, 0, NONE]
    assert length[[0, 2, 3, 6]].tolist() == [1, 2, 2, 1]
    assert latest.tolist() == [3, 6]


@pytest.mark.parametrize(("own", "parent"), [(2, 0), (-1, 0), (0, 2), (0, -2)])
def test_processes_that_are_not_there_are_refused(own: int, parent: int) -> None:
    steps = np.array([2], np.uint8)
    columns = [np.array([number], np.int32) for number in (own, parent)]
    filled = [np.full(1, NONE, np.int32) for _ in range(3)]
    with pytest.raises(IndexError):
        replay(steps, *columns, np.full(2, NONE, np.int32), *filled)
