from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbr2pgo.model.branch_stacks import CallChains, from_lists


def test_call_stacks_belong_to_samples() -> None:
    batch = from_lists([[(1, 2, 0)], []])
    chains = CallChains(np.array([5, 6, 7], np.uint64), np.array([0, 1, 3]))
    assert replace(batch, chains=chains).chains is chains
    with pytest.raises(ValueError, match="1 call stacks for 2 samples"):
        replace(batch, chains=CallChains(np.array([5], np.uint64), np.array([0, 1])))


def test_what_belongs_to_samples_goes_with_them() -> None:
    whole = replace(
        from_lists([[(1, 2, 3)], [], [(4, 5, 6), (7, 8, 9)]]),
        tid=np.array([10, 11, 12], np.int32), time=np.array([20, 21, 22], np.uint64),
        counters=np.array([30, 31, 32], np.uint64), cpu=np.array([40, 41, 42], np.int32),
        chains=CallChains(np.array([50, 51, 52], np.uint64), np.array([0, 1, 1, 3])),
        accesses=np.array([[60, 61], [62, 63], [64, 65]], np.uint64),
    )  # fmt: skip
    few = whole.of_samples(np.array([0, 2]))
    assert few.entries.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert few.offsets.tolist() == [0, 1, 3]
    assert (few.tid.tolist(), few.time.tolist()) == ([10, 12], [20, 22])
    assert few.counters is not None
    assert few.cpu is not None
    assert few.chains is not None
    assert few.accesses is not None
    assert (few.counters.tolist(), few.cpu.tolist()) == ([30, 31, 32], [40, 42])
    assert few.chains.frames.tolist() == [50, 51, 52]
    assert few.chains.offsets.tolist() == [0, 1, 3]
    assert few.accesses.tolist() == [[60, 61], [64, 65]]
    last = whole.of_samples(np.array([1, 2])).chains
    assert last is not None
    assert (last.frames.tolist(), last.offsets.tolist()) == ([51, 52], [0, 0, 2])


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2]])
def test_offsets_must_cut_all_frames(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must start at 0"):
        CallChains(np.zeros(3, np.uint64), np.array(offsets, np.int64))
