from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.contexts._probe_sums import sums_of_probes

INLINED, PROBES, NODES = 4, 12, 3
SLOTS = [0, 3, 4, 4, 9]
"""Where those of each inlined function begin; the third one has none."""


@st.composite
def probes(draw):
    """The inlined function, the function around it and the slot of each probe."""
    inline = draw(st.lists(st.sampled_from([0, 1, 3]), min_size=PROBES, max_size=PROBES))
    function = draw(st.lists(st.integers(0, 1), min_size=PROBES, max_size=PROBES))
    slot = [draw(st.integers(SLOTS[i], SLOTS[i + 1] - 1)) for i in inline]
    return inline, function, slot


RUNS = st.lists(
    st.tuples(
        st.integers(0, NODES - 1), st.integers(0, PROBES - 1), st.integers(-1, PROBES - 1),
        st.integers(1, 2**63),
    )
)  # fmt: skip


def arrays(runs, probes):
    node, first, last, count = zip(*runs, strict=True) if runs else ((), (), (), ())
    inline, function, slot = probes
    return (
        np.array(node, np.int64), np.array(first, np.int64), np.array(last, np.int64),
        np.array(count, np.uint64), np.array(inline, np.int32), np.array(function, np.int64),
        np.array(slot, np.int64), np.array(SLOTS, np.int64),
    )  # fmt: skip


@given(RUNS, probes())
def test_probes_are_counted_as_one_by_one(runs, probes) -> None:
    rows, offsets, sums = sums_of_probes(*arrays(runs, probes))
    known: dict[tuple[int, int, int], dict[int, int]] = {}
    for node, first, last, count in runs:
        for probe in range(first, last + 1):
            inline, function, slot = (column[probe] for column in probes)
            counts = known.setdefault(
                (node, inline, function), dict.fromkeys(range(SLOTS[inline], SLOTS[inline + 1]), 0)
            )
            counts[slot] = min(counts[slot] + count, 2**64 - 1)
    assert list(map(tuple, rows.tolist())) == list(known)
    found = [sums[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == [list(counts.values()) for counts in known.values()]


def test_probes_that_there_are_not_are_refused() -> None:
    wrong = arrays([(0, 0, PROBES, 1)], ([0] * PROBES, [0] * PROBES, [0] * PROBES))
    with pytest.raises(IndexError):
        sums_of_probes(*wrong)
