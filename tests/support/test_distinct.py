from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.support.distinct import distinct


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
