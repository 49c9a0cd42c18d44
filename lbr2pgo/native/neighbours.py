"""The straight runs between neighbouring entries of a stack, with what their branch says of them.

Cycles and flags of an entry speak of the run that it ends: from the older neighbour's target up to
its own source. When two entries count as neighbours is decided as in `native.traces`.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import END, TO
from lbr2pgo.model.branch_stacks import ABORT, CYCLES_MASK, CYCLES_SHIFT, MISPREDICTED
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.traces import (
    CHAINS,
    COUNTED,
    EMPTY,
    EXCEPTION,
    KNOWN_BITS,
    Stacks,
    Table,
    Word,
    add,
    fate_of,
    has_room,
    is_duplicate,
)
from lbr2pgo.support.arrays import I64, U64

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ABORT, _MISPREDICTED = np.uint64(ABORT), np.uint64(MISPREDICTED)
_CYCLES_SHIFT, _CYCLES_MASK = np.uint64(CYCLES_SHIFT), np.uint64(CYCLES_MASK)
_RUN = np.uint64(TO | END)


@compiled_leaf
def runs_of(stack: U64, mode: int, low: Word, high: Word, out: U64) -> int:
    """Write start, end, cycles, mispredicted of each run to `out` (k, 4); how many there are.

    Newest first. `stack` (k, 3) as in `BranchStacks`; [low, high) holds the image.
    """
    found = 0
    has_end, end, flags_at_end, newer_fate = False, _ZERO, _ZERO, EMPTY
    for k in range(len(stack)):
        source, target, flags = stack[k, 0], stack[k, 1], stack[k, 2]
        from_in, to_in = bool(low <= source < high), bool(low <= target < high)
        fate = fate_of(source, target, flags, from_in or to_in, mode)
        may_repeat = k == 1 and fate == newer_fate == COUNTED and mode == CHAINS
        if may_repeat and is_duplicate(stack[0], stack[1]):
            continue
        newer_fate = fate
        if fate != COUNTED and fate != EXCEPTION:
            has_end = False
            continue
        if to_in and has_end:
            out[found, 0], out[found, 1] = target, end
            out[found, 2] = (flags_at_end >> _CYCLES_SHIFT) & _CYCLES_MASK
            out[found, 3] = flags_at_end & _MISPREDICTED
            found += 1
        has_end = from_in and fate == COUNTED and mode == CHAINS and not flags & _ABORT
        end, flags_at_end = source, flags
    return found


@compiled_leaf
def has_copy(stack: U64, mode: int, low: Word, high: Word) -> bool:
    """Whether `traces.count_stacks` takes the second entry for a copy of the newest one."""
    if len(stack) < 2 or mode != CHAINS or not is_duplicate(stack[0], stack[1]):
        return False
    source, target = stack[0, 0], stack[0, 1]
    inside = bool(low <= source < high) or bool(low <= target < high)
    return bool(
        fate_of(source, target, stack[0, 2], inside, mode) == COUNTED
        and fate_of(source, target, stack[1, 2], inside, mode) == COUNTED
    )


@compiled_leaf
def list_copies(stacks: Stacks, out: I64) -> int:
    """Write the numbers of the samples with a copy to `out` (n,); how many."""
    found = 0
    for i in range(len(stacks.spaces)):
        if stacks.spaces[i] < 0:
            continue
        space = np.uint64(stacks.spaces[i])
        low, high = stacks.bounds[space, 0], stacks.bounds[space, 1]
        stack = stacks.entries[stacks.offsets[i] : stacks.offsets[i + 1]]
        if has_copy(stack, stacks.modes[i], low, high):
            out[found] = i
            found += 1
    return found


@compiled_leaf
def _runs_of_sample(stacks: Stacks, i: int, out: U64) -> int:
    space = np.uint64(stacks.spaces[i])
    low, high = stacks.bounds[space, 0], stacks.bounds[space, 1]
    stack = stacks.entries[stacks.offsets[i] : stacks.offsets[i + 1]]
    return runs_of(stack, stacks.modes[i], low, high, out)


@compiled_leaf
def list_runs(stacks: Stacks, out: U64, samples: I64) -> int:
    """All runs of a batch one after another; how many.

    out (m, 4) as in `runs_of`; samples (m,) gets each run's sample.
    """
    found = 0
    for i in range(len(stacks.spaces)):
        if stacks.spaces[i] >= 0:
            new = _runs_of_sample(stacks, i, out[found:])
            samples[found : found + new] = i
            found += new
    return found


@compiled_leaf
def count_cycles(stacks: Stacks, table: Table, out: U64, first: int, used: int) -> tuple[int, int]:
    """Count runs by start, end and cycles, from sample `first` on, as far as the table has room.

    As `traces.count_stacks`, with keys of start, end, cycles and space; `out` is room for the runs
    of the longest stack.
    """
    for i in range(first, len(stacks.spaces)):
        if stacks.spaces[i] < 0:
            continue
        if not has_room(stacks, i, table, used):
            return i, used
        space = np.uint64(stacks.spaces[i])
        for k in range(_runs_of_sample(stacks, i, out)):
            key = (out[k, 0], out[k, 1], out[k, 2], space << KNOWN_BITS | _RUN)
            used += add(table, key, (stacks.weights[i], _ZERO))
    return len(stacks.spaces), used
