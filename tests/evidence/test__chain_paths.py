from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence._chain_paths import ChainFollower
from lbr2pgo.evidence.path_counts import WAYS
from lbr2pgo.evidence.sample_runs import marked_before

SIZE, FUNCTIONS = 12, 2


@st.composite
def batches(draw: st.DrawFn):
    """Blocks (with their function, and whether it is entered there), chains, and samples.

    These are runs, and where the newest branch led.
    """
    row = st.integers(0, SIZE - 1)
    block = st.tuples(st.integers(0, FUNCTIONS - 1), st.booleans())
    blocks = draw(st.dictionaries(row, block, min_size=4))
    order = draw(st.permutations(sorted(blocks)))
    cut = draw(st.integers(2, len(order)))
    run = st.tuples(row, row, st.sampled_from([True, True, True, False]))
    runs = st.lists(run.filter(lambda r: r[0] <= r[1]), max_size=6)
    samples = draw(st.lists(st.tuples(runs, st.integers(-1, SIZE - 1)), max_size=5))
    return blocks, (order[:cut], order[cut:]), samples, [draw(st.integers(1, 4)) for _ in samples]


def stretches(blocks, runs, led_to) -> list[list[int]]:
    """Blocks in the order in which they began, oldest first; parted where something is unknown."""
    found: list[list[int]] = [[]]
    for first, last, is_valid in reversed(runs):
        if is_valid:
            found[-1] += [i for i in range(first, last + 1) if i in blocks]
        else:
            found.append([])
    if runs and runs[0][2] and led_to in blocks:
        found[-1].append(led_to)
    return found


def expected(blocks, follower, samples, weights):
    """By block and number of chain blocks before it: next block known, and the chain's."""
    known, went_on = np.zeros((2, SIZE, WAYS), np.int64)
    for (runs, led_to), weight in zip(samples, weights, strict=True):
        for stretch in stretches(blocks, runs, led_to):
            for function in range(FUNCTIONS):
                own = [i for i in stretch if blocks[i][0] == function]
                way = 0
                for before, here in pairwise(own):
                    goes_on = follower.get(before) == here
                    if before in follower and (goes_on or not blocks[here][1]):
                        known[before, way] += weight
                        went_on[before, way] += weight * goes_on
                    way = way + 1 if goes_on else 0
    return known, went_on


@settings(max_examples=300, deadline=None)
@given(batches(), st.integers(0, 5))
def test_paths_are_those_of_plain_counting(batch, cut: int) -> None:
    """However samples are cut into batches."""
    blocks, chains, samples, weights = batch
    slot = np.full(SIZE, -1)
    for chain, base in zip(chains, (0, SIZE + 1), strict=True):
        slot[chain] = base + np.arange(len(chain))
    rows = [(f, e, v, s) for s, (runs, _) in enumerate(samples) for f, e, v in runs]
    first, last, valid, sample = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    is_start, is_entry = np.zeros((2, SIZE), np.bool_)
    owner = np.zeros(SIZE, np.int64)
    for i, (function, entered) in blocks.items():
        is_start[i], is_entry[i], owner[i] = True, entered, function
    known, went_on = np.zeros((2, 2 * SIZE + 2, WAYS), np.uint64)
    columns = np.column_stack((owner, slot, is_entry))[is_start].astype(np.int32)
    paths = ChainFollower(columns, FUNCTIONS, known, went_on)
    before = marked_before(is_start)
    spans = np.column_stack((before[first], before[last + 1]))
    spans[valid == 0] = -1
    run = np.arange(len(first), dtype=np.int32)
    led_to = np.array([before[i] if i in blocks else -1 for _, i in samples], np.int32)
    for part in (sample < cut, sample >= cut):
        paths.follow(spans, run[part], sample[part], led_to, np.array(weights, np.uint64))
    follower = {a: b for chain in chains for a, b in pairwise(chain)}
    wanted = expected(blocks, follower, samples, weights)
    for found, counted in zip((known, went_on), wanted, strict=True):
        for i in follower:
            np.testing.assert_array_equal(found[slot[i]], counted[i])
