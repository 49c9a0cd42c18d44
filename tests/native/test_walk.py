"""What stacks point to is checked where it is used; `test_traces` has the rule itself."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.counting._traces import count_traces
from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.walk import Reason, Stacks

COLUMNS = {
    "entries": np.array([[0x1000, 0x1010, 2]] * 4, np.uint64),
    "offsets": np.array([0, 2, 4]),
    "spaces": np.zeros(2, np.int64),
    "kinds": np.zeros(2, np.uint8),
    "weights": np.ones(2, np.uint64),
    "bounds": np.array([[0x1000, 0x2000]], np.uint64),
}


def count(**changes: np.ndarray) -> int:
    table, tallies = KeyTable(), np.zeros(len(Reason), np.uint64)
    count_traces(Stacks(*(COLUMNS | changes).values()), table, tallies)
    return len(table)


def test_read_only_columns_will_do() -> None:
    for column in COLUMNS.values():
        column.flags.writeable = False
    assert count() == 1


@pytest.mark.parametrize(
    "changes",
    [{"offsets": np.array(offsets)} for offsets in ([0, 2, 5], [-1, 2, 4], [0, 5, 4], [0, 2])]
    + [{"spaces": np.array([0, 1])}, {"bounds": np.zeros((0, 2), np.uint64)}]
    + [{"kinds": np.zeros(1, np.uint8)}, {"weights": np.ones(1, np.uint64)}],
)
def test_what_points_outside_is_an_error(changes: dict[str, np.ndarray]) -> None:
    with pytest.raises(IndexError):
        count(**changes)


@pytest.mark.parametrize("name", ["entries", "bounds"])
def test_tables_of_other_widths_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="three columns"):
        count(**{name: np.zeros((4, 4), np.uint64)})
