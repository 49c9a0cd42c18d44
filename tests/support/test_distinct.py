from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lbr2pgo.support.distinct import distinct, distinct_rows, order_of, place_of, rows_by


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5)))
def test_as_numpy(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    found = distinct(array)
    assert found.tolist() == np.unique(array).tolist()
    assert found.dtype == array.dtype
    assert array.tolist() == values


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
def test_the_type_stays(kind: type[np.integer[object]]) -> None:
    assert distinct(np.array([2, 1, 2], kind)).dtype == kind


edges = st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
numbers = edges | st.integers(0, 12)


@given(st.lists(numbers, max_size=30), st.lists(numbers, max_size=30).map(sorted))
def test_the_place_of_each_number(values: list[int], ordered: list[int]) -> None:
    expected = [ordered.index(value) if value in ordered else -1 for value in values]
    assert place_of(np.array(values, np.uint64), np.array(ordered, np.uint64)).tolist() == expected


def test_numbers_with_a_sign_have_a_place() -> None:
    values = np.array([-(2**63), -1, 7, -2], np.int64)
    assert place_of(values, np.array([-(2**63), -1, 7], np.int64)).tolist() == [0, 1, 2, -1]


_KINDS: list[tuple[type[np.generic], st.SearchStrategy[int]]] = [
    (np.bool_, st.integers(0, 1)),
    (np.uint8, st.integers(0, 255)),
    (np.int64, st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])),
    (np.uint64, numbers),
]


@st.composite
def columns_of_keys(draw: st.DrawFn) -> list[np.ndarray[tuple[int], np.dtype[np.generic]]]:
    rows, kinds = draw(st.integers(0, 20)), draw(st.lists(st.sampled_from(_KINDS), min_size=1))
    drawn = (draw(st.lists(values, min_size=rows, max_size=rows)) for _, values in kinds)
    return [np.array(column, kind) for column, (kind, _) in zip(drawn, kinds, strict=True)]


@given(columns_of_keys())
@example([np.arange(3, dtype=np.uint64) << np.uint64(62)] * 3)
def test_the_order_of_keys_is_that_of_lexsort(
    keys: list[np.ndarray[tuple[int], np.dtype[np.generic]]],
) -> None:
    assert order_of(*keys).tolist() == np.lexsort(keys[::-1]).tolist()


@given(st.lists(st.integers(-1, 5), max_size=20))
def test_rows_are_grouped_by_number(numbers: list[int]) -> None:
    found = {number: rows.tolist() for number, rows in rows_by(np.array(numbers, np.int32))}
    expected: dict[int, list[int]] = {}
    for row, number in enumerate(numbers):
        expected.setdefault(number, []).append(row)
    assert found == expected
    assert list(found) == sorted(found)


row_numbers = st.integers(0, 3) | st.sampled_from([2**16, 2**32 - 1])
some_rows = st.lists(st.tuples(st.integers(-1, 2), row_numbers, row_numbers), max_size=12)


@given(some_rows)
def test_rows_are_numbered_in_their_order_whether_they_fit_one_number_or_not(
    rows: list[tuple[int, int, int]],
) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    first, number = distinct_rows(*columns)
    ordered = sorted(set(rows))
    assert first.tolist() == [rows.index(row) for row in ordered]
    assert number.tolist() == [ordered.index(row) for row in rows]
