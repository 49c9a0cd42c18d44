"""How long one round of a loop took: from a backward branch to its next occurrence in a stack."""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.model.branch_stacks import ABORT, CYCLES_MASK, CYCLES_SHIFT
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.traces import (
    CHAINS,
    COUNTED,
    KNOWN_BITS,
    OUTSIDE,
    Stacks,
    Table,
    Word,
    add,
    fate_of,
    has_room,
    is_duplicate,
)
from lbr2pgo.support.arrays import U64

_ZERO = np.uint64(0)
_ABORT = np.uint64(ABORT)
_CYCLES_SHIFT, _CYCLES_MASK = np.uint64(CYCLES_SHIFT), np.uint64(CYCLES_MASK)
_KNOWN = np.uint64(FROM | TO)
MISSING, SATURATED = _ZERO, _CYCLES_MASK
NEVER = np.uint64(CYCLES_MASK + 1)
"""Stands for "no earlier occurrence"."""


@compiled_leaf
def _is_link(entry: U64, low: Word, high: Word) -> bool:
    """Whether time goes on across an entry: a branch, here or in another image."""
    inside = bool(low <= entry[0] < high) or bool(low <= entry[1] < high)
    fate = fate_of(entry[0], entry[1], entry[2], inside, CHAINS)
    return bool(fate in (COUNTED, OUTSIDE) and not entry[2] & _ABORT)


@compiled_leaf
def since_last(stack: U64, k: int, low: Word, high: Word) -> Word:
    """Cycles from the branch of entry `k` back to the one before, MISSING, SATURATED or NEVER.

    Missing if one entry in between doesn't say; saturated if one, or the sum, is at its end.
    """
    total = _ZERO
    is_missing, is_saturated = False, False
    for j in range(k, len(stack)):
        if not _is_link(stack[j], low, high):
            return NEVER
        if j > k and stack[j, 0] == stack[k, 0] and stack[j, 1] == stack[k, 1]:
            if is_missing:
                return MISSING
            return SATURATED if is_saturated or total >= SATURATED else total
        cycles = (stack[j, 2] >> _CYCLES_SHIFT) & _CYCLES_MASK
        is_missing |= cycles == MISSING
        is_saturated |= cycles == SATURATED
        total += cycles
    return NEVER


@compiled_leaf
def count_iterations(stacks: Stacks, table: Table, first: int, used: int) -> tuple[int, int]:
    """Count backward branches inside the image by target, source and cycles since the last time.

    Arguments and result as `neighbours.count_cycles`; keys of target, source, cycles, space.
    """
    for i in range(first, len(stacks.spaces)):
        if stacks.spaces[i] < 0 or stacks.modes[i] != CHAINS:
            continue
        stack = stacks.entries[stacks.offsets[i] : stacks.offsets[i + 1]]
        if not has_room(stacks, i, table, used):
            return i, used
        space = np.uint64(stacks.spaces[i])
        low, high = stacks.bounds[space, 0], stacks.bounds[space, 1]
        begin = 1 if len(stack) > 1 and is_duplicate(stack[0], stack[1]) else 0
        for k in range(begin, len(stack)):
            source, target = stack[k, 0], stack[k, 1]
            if not (low <= target <= source < high):
                continue
            cycles = since_last(stack, k, low, high)
            if cycles != NEVER:
                key = (target, source, cycles, space << KNOWN_BITS | _KNOWN)
                used += add(table, key, (stacks.weights[i], _ZERO))
    return len(stacks.spaces), used
