from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts._line_sums import rows_of, summed

LARGEST = 2**64 - 1
ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 40) | st.integers(0, LARGEST), st.integers(0, 2**62)
    ),
    max_size=200,
)


def columns(rows):
    group, key, count = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(group, np.int64), np.array(key, np.uint64), np.array(count, np.uint64)


@given(ROWS)
def test_rows_of_a_group_and_key_are_added_up_in_their_order(rows) -> None:
    offsets, keys, sums = summed(*columns(rows), 4)
    found = [
        (group, key, count)
        for group in range(4)
        for key, count in zip(
            keys[offsets[group] : offsets[group + 1]].tolist(),
            sums[offsets[group] : offsets[group + 1]].tolist(),
            strict=True,
        )
    ]
    known = Counter[tuple[int, int]]()
    for group, key, count in rows:
        known[group, key] += count
    assert found == [(*pair, min(count, LARGEST)) for pair, count in sorted(known.items())]


@given(ROWS, ROWS)
def test_rows_are_found_where_they_stand(rows, others) -> None:
    offsets, keys, _ = summed(*columns(rows), 4)
    group, key, _ = columns(rows + others)
    found = rows_of(offsets, keys, group, key)
    known = {(group, key) for group, key, _ in rows}
    for row, of, wanted in zip(found.tolist(), group.tolist(), key.tolist(), strict=True):
        if (of, wanted) not in known:
            assert row == -1
        else:
            assert keys[row] == wanted
            assert offsets[of] <= row < offsets[of + 1]


def test_groups_that_there_are_not_are_refused() -> None:
    with pytest.raises(IndexError):
        summed(*columns([(4, 0, 1)]), 4)
