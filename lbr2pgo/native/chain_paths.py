"""Along which chains of blocks samples went, block by block."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.support.arrays import I64, U64, Bools


@compiled_leaf
def _arrive(
    i: int,
    weight: int,
    time: int,
    owner: I64,
    slot: I64,
    is_door: Bools,
    at: I64,
    begun: I64,
    since: I64,
    known: U64,
    went_on: U64,
) -> None:
    """A block begins to run, at instruction `i`: note how its function came here."""
    function, here = owner[i], slot[i]
    before = at[function] if since[function] == time else -1
    goes_on = before >= 0 and here == before + 1
    if goes_on or (before >= 0 and not is_door[i]):
        way = min(before - begun[function], known.shape[1] - 1)
        known[before, way] += weight
        if goes_on:
            went_on[before, way] += weight
    if not goes_on:
        begun[function] = here
    at[function] = here
    since[function] = time


@compiled
def follow_chains(
    first: I64,
    last: I64,
    valid: Bools,
    sample: I64,
    led_to: I64,
    weights: U64,
    next_start: I64,
    owner: I64,
    slot: I64,
    is_door: Bools,
    functions: int,
    known: U64,
    went_on: U64,
) -> None:
    """Follow each sample through its functions' blocks, from the oldest run to the newest.

    first, last, valid, sample (k,), led_to, weights (n,) as in `sample_runs.SampleRuns`; the rest
    as in `chain_paths.ChainPlan` and `PathCounts`.
    """
    size = len(owner)
    at, begun = np.full(functions, -1, np.int64), np.full(functions, -1, np.int64)
    since = np.full(functions, -1, np.int64)
    time = 0
    for k in range(len(first) - 1, -1, -1):
        weight = weights[sample[k]]
        if not valid[k]:
            time += 1  # what ran in between is not known
            continue
        i = next_start[first[k]]
        while i <= last[k] and i < size:
            _arrive(i, weight, time, owner, slot, is_door, at, begun, since, known, went_on)
            i = next_start[i + 1]
        if k == 0 or sample[k - 1] != sample[k]:
            i = led_to[sample[k]]
            if i >= 0 and next_start[i] == i:
                _arrive(i, weight, time, owner, slot, is_door, at, begun, since, known, went_on)
            time += 1
