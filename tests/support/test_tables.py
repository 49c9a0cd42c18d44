from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.tables import ascending, table, taken


@table
class Counts:
    key: U64
    low: I64
    seen: Bools | None = None
    name: str = ""

    def __post_init__(self) -> None:
        ascending(self, "key", "low")


def counts(*keys: tuple[int, int]) -> Counts:
    table = np.array(keys, np.int64).reshape(-1, 2)
    return Counts(table[:, 0].astype(np.uint64), table[:, 1])


def test_a_column_cannot_be_written_to() -> None:
    given = np.array([1, 2], np.uint64)
    made = Counts(given, np.array([0, 0]))
    with pytest.raises(ValueError, match="read-only"):
        made.key[0] = 7
    given[0] = 0  # the caller's own
    assert replace(made, name="again").key.flags.writeable is False


def test_another_type_of_element_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Counts\.key must hold uint64, not int64"):
        Counts(np.array([1, 2]), np.array([0, 0]))
    with pytest.raises(ValueError, match=r"Counts\.seen must hold bool, not uint8"):
        replace(counts((1, 1)), seen=np.zeros(1, np.uint8))


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Counts\.low has shape \(1,\), not \(2,\)"):
        Counts(np.array([1, 2], np.uint64), np.array([0]))
    with pytest.raises(ValueError, match=r"Counts\.seen has shape \(2, 1\)"):
        replace(counts((1, 1), (2, 2)), seen=np.zeros((2, 1), np.bool_))


def test_a_row_out_of_order_is_named() -> None:
    with pytest.raises(ValueError, match=r"Counts\.key, low: row 2 is below the one before it"):
        counts((1, 5), (2, 0), (1, 9))
    with pytest.raises(ValueError, match="row 1 is the same as the one before it"):
        counts((1, 5), (1, 5))
    assert len(counts().key) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1)), max_size=6))
def test_rows_are_compared_column_by_column(keys: list[tuple[int, int]]) -> None:
    if all(a < b for a, b in pairwise(keys)):
        counts(*keys)
    else:
        with pytest.raises(ValueError, match="before it"):
            counts(*keys)


def test_rows_are_taken_of_columns_only_and_checked_again() -> None:
    table = replace(counts((1, 0), (2, 5), (3, 9)), name="these")
    some = taken(table, np.array([0, 2]))
    assert (some.key.tolist(), some.low.tolist()) == ([1, 3], [0, 9])
    assert (some.seen, some.name) == (None, "these")
    assert taken(table, table.low > 0).low.tolist() == [5, 9]
    with pytest.raises(ValueError, match="below"):
        taken(table, np.array([2, 0]))
    with pytest.raises(ValueError, match="shape"):
        taken(table, np.array([0, 2]), "key")
