from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence._moments import MOMENTS, MomentSums
from lbr2pgo.evidence.effective_samples import rows_of
from lbr2pgo.evidence.sample_runs import marked_before
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED

SIZE = 12


@st.composite
def batches(draw: st.DrawFn):
    conditional = draw(st.lists(st.booleans(), min_size=SIZE, max_size=SIZE))
    prediction = st.sampled_from([0, MISPREDICTED, PREDICTED, MISPREDICTED | PREDICTED])
    place = st.integers(0, SIZE - 1)
    row = st.tuples(place, place, prediction, st.sampled_from([True, True, False]))
    samples = draw(st.lists(st.lists(row.filter(lambda r: r[0] <= r[1]), max_size=6), max_size=5))
    weights = [draw(st.integers(1, 4)) for _ in samples]
    return conditional, samples, weights


def expected(conditional, samples, weights):
    outcomes, misses = np.zeros((SIZE, MOMENTS)), np.zeros((SIZE, MOMENTS))
    for runs, weight in zip(samples, weights, strict=True):
        seen: Counter[int] = Counter()
        taken: Counter[int] = Counter()
        ends: Counter[int] = Counter()
        missed: Counter[int] = Counter()
        for first, last, prediction, valid in runs:
            if not valid:
                continue
            for i in range(first, last + 1):
                if conditional[i]:
                    seen[i] += 1
                    taken[i] += i == last
            ends[last] += prediction != 0
            missed[last] += prediction & MISPREDICTED != 0
        for table, n_of, t_of in ((outcomes, seen, taken), (misses, ends, missed)):
            for i, n in n_of.items():
                t = t_of[i]
                table[i] += weight * np.array([n, t, n * n, t * n, t * t])
    return outcomes, misses


@settings(max_examples=300, deadline=None)
@given(batches(), st.integers(0, 5))
def test_moments_are_those_of_plain_counting(batch, cut: int) -> None:
    """However samples are cut into batches."""
    conditional, samples, weights = batch
    listed = [(*run, s) for s, runs in enumerate(samples) for run in runs]
    first, last, prediction, valid, sample = np.array(listed, np.int64).reshape(-1, 5).T.copy()
    outcomes, misses = np.zeros((SIZE, MOMENTS)), np.zeros((SIZE, MOMENTS))
    before = marked_before(np.array(conditional)), np.arange(SIZE + 1, dtype=np.int32)
    sums = MomentSums(outcomes[: before[0][-1]], misses)
    rows = np.where(valid[:, None], rows_of(*before, first, last), -1).astype(np.int32)
    run = np.arange(len(first), dtype=np.int32)
    for part in (sample < cut, sample >= cut):
        sums.add(
            rows, run[part], prediction[part].astype(np.uint8), sample[part],
            np.array(weights, np.uint64),
        )  # fmt: skip
    taken, missed = expected(*batch)
    np.testing.assert_array_equal(outcomes[: before[0][-1]], taken[conditional])
    np.testing.assert_array_equal(misses, missed)
