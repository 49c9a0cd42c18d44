"""Branches at the ends of stacks, some of them planted there."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.analyses.stack_ends import EndShares, bias_notes, end_shares
from lbr2pgo.evidence.stack_ends import StackEnds
from lbr2pgo.support.addresses import image_array

STACKS, DEPTH, BRANCHES = 20_000, 32, 200


def recorded(seed: int, planted: float = 0.0, end: str = "newest") -> EndShares:
    """Branches drawn by one distribution; of one end's, a part replaced by branch 7."""
    random = np.random.default_rng(seed)
    weight = 1 / np.arange(1, BRANCHES + 1)
    share = weight / weight.sum()
    ends = {name: random.multinomial(STACKS, share) for name in ("newest", "oldest")}
    moved = random.binomial(ends[end], planted)
    ends[end] = ends[end] - moved
    ends[end][7] += moved.sum()
    middle = random.multinomial(STACKS * (DEPTH - 2), share)
    address = image_array(range(BRANCHES))
    newest, oldest = (ends[name].astype(np.uint64) for name in ("newest", "oldest"))
    total = middle.astype(np.uint64) + newest + oldest
    return end_shares(address, total, StackEnds(address, newest, oldest))


@pytest.mark.parametrize("seed", range(5))
def test_chance_is_no_bias(seed: int) -> None:
    shares = recorded(seed)
    assert not shares.newest_off.any()
    assert not shares.oldest_off.any()
    assert max(shares.bias(shares.newest), shares.bias(shares.oldest)) < 0.005
    assert bias_notes(shares) == ()


@pytest.mark.parametrize("end", ["newest", "oldest"])
def test_a_branch_that_sticks_to_an_end_is_found_there_alone(end: str) -> None:
    shares = recorded(1, 0.05, end)
    found = {"newest": shares.newest_off, "oldest": shares.oldest_off}
    assert np.flatnonzero(found.pop(end)).tolist() == [7]
    assert not found.popitem()[1].any()


@pytest.mark.parametrize("planted", [0.1, 0.3])
def test_the_bias_is_most_of_what_does_not_belong_there_and_no_more(planted: float) -> None:
    shares = recorded(2, planted)
    assert planted / 2 < shares.bias(shares.newest) <= planted
    (note,) = bias_notes(shares)
    assert "--drop-newest 1" in note


def test_no_stacks_have_no_bias() -> None:
    none = np.zeros(0, np.uint64)
    shares = end_shares(image_array(()), none, StackEnds(image_array(()), none, none))
    assert (len(shares.address), shares.bias(shares.newest)) == (0, 0.0)
