"""Integers and texts to Arrow and back, against what Arrow itself makes of them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lbr2pgo.support.arrow import INTEGERS, integers_of, of_integers, of_texts, whole

arrow = pytest.importorskip("pyarrow")
_LOADED = """
import sys
import numpy as np
import pyarrow
import pyarrow.parquet
from lbr2pgo.support.arrow import integers_of, of_integers, of_texts
made = of_integers(pyarrow, np.arange(3), np.array([True, False, False]))
integers_of(made), of_texts(pyarrow, ["a"])
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_integers_come_back_whatever_their_type(name: str) -> None:
    numbers = np.array([0, 1, np.iinfo(name).max, np.iinfo(name).min], name)
    made = of_integers(arrow, numbers)
    assert made.equals(arrow.array(numbers))
    assert integers_of(made).dtype == numbers.dtype
    assert np.array_equal(integers_of(made), numbers)


@pytest.mark.parametrize("start", [0, 1, 9])
def test_nulls_are_another_number_in_each_part_of_an_array(start: int) -> None:
    numbers, are_null = np.arange(20, dtype=np.int32), np.arange(20) % 3 == 0
    made = of_integers(arrow, numbers, are_null)
    assert made.equals(arrow.array(numbers, mask=are_null))
    expected = np.where(are_null, 77, numbers)[start : start + 10]
    assert integers_of(made.slice(start, 10), null=77).tolist() == expected.tolist()


def test_an_array_of_nulls_or_of_nothing_needs_no_memory() -> None:
    assert integers_of(arrow.nulls(2, arrow.int32()), null=5).tolist() == [5, 5]
    assert integers_of(arrow.array([], arrow.uint64())).tolist() == []


@pytest.mark.parametrize("texts", [[], ["", "aa", "ä"]])
def test_texts_are_those_of_arrow(texts: list[str]) -> None:
    assert of_texts(arrow, texts).equals(arrow.array(texts, arrow.string()))


def test_a_column_of_several_chunks_becomes_one_array() -> None:
    column = arrow.chunked_array([[1, 2], [3]])
    assert integers_of(whole(column)).tolist() == [1, 2, 3]
    assert integers_of(whole(column.slice(1, 1))).tolist() == [2]


def test_pandas_is_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
