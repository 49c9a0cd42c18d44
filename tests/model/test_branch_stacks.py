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


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2]])
def test_offsets_must_cut_all_frames(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must start at 0"):
        CallChains(np.zeros(3, np.uint64), np.array(offsets, np.int64))
