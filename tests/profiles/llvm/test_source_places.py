"""Places as LLVM names them, and rows of numbers told apart."""

from __future__ import annotations

import numpy as np
from builders.frames import places_with
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.source_places import distinct_rows, inline_contexts, places_of

numbers = st.integers(0, 3) | st.sampled_from([2**16, 2**32 - 1])
some_rows = st.lists(st.tuples(st.integers(-1, 2), numbers, numbers), max_size=12)


@given(some_rows)
def test_rows_are_numbered_in_their_order_whether_they_fit_one_number_or_not(
    rows: list[tuple[int, int, int]],
) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    first, number = distinct_rows(*columns)
    ordered = sorted(set(rows))
    assert first.tolist() == [rows.index(row) for row in ordered]
    assert number.tolist() == [ordered.index(row) for row in rows]


def test_what_is_in_a_function_without_a_name_is_at_the_call_of_the_outermost_such() -> None:
    f, nameless, g = ("f", 11, 10, 4), ("", 25, 20, 0), ("g", 31, 30, 0)
    rows = [[f, nameless, g, nameless, g], [f, g, nameless], [f, g], [nameless, g], []]
    places = places_of(places_with(rows), is_fs=True)
    contexts, innermost = inline_contexts(places)
    names = [places.names[i] for i in contexts.function.tolist()]
    assert names == ["f", "g"]
    assert innermost.tolist() == [0, 1, 1, -1, -1]
    line, discriminator = places.location(np.arange(3))
    assert list(zip(line.tolist(), discriminator.tolist(), strict=True)) == [(1, 4), (1, 0), (1, 0)]
