"""Cut branch stacks into traces and count them in a hash table, without leaving arrays.

The rules are those of `lbr2pgo.counting.count`, whose docstring shows them on a small stack. All
integers are uint64: Numba turns a mix of signed and unsigned into floating point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.model.branch_stacks import (
    ABORT,
    MISPREDICTED,
    NOT_TAKEN,
    SPEC_MASK,
    SPEC_SHIFT,
    SPEC_WRONG_PATH,
    TYPE_MASK,
    TYPE_SHIFT,
)
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.support.arrays import I64, U8, U64

Word = np.uint64

# What became of an entry: rows of the tally array. Every entry read is in exactly one.
(
    COUNTED, OUTSIDE, EMPTY, POISON, WRONG_PATH, DUPLICATE, EXCEPTION, NOT_TAKEN_ENTRY, CALL_STACK,
    BOGUS_TARGET,
) = range(10)  # fmt: skip
FATES = 10
# Behind the fates: pairs of neighbours whose fall-through the recorder left unknown.
ABORTED, UNCHAINED = FATES, FATES + 1
TALLIES = FATES + 2

# What an event's branch filter allows: chains, single branches, or nothing. JOINED believes all
# entries and joins what stands around those outside the image, as llvm-profgen does (LLVM:
# tools/llvm-profgen/PerfReader.cpp, extractLBRStack).
CHAINS, BRANCHES_ONLY, NOTHING, JOINED = 0, 1, 2, 3

# Linux marks with this where the valid entries of AMD's Zen 3 BRS end (arch/x86/events/amd/brs.c).
POISON_ADDRESS = np.uint64(0xFFFFFFFFFFFFFFFE)
# AMD erratum 1452: an entry is bogus if the reserved bit of its LBR_TO register is set (Linux:
# arch/x86/events/amd/lbr.c, struct branch_entry). Where a reader handed the register on as it was,
# the bit stands in the address, and tells as long as the bits below say that it is a user's.
RESERVED_BIT, TOP_ADDRESS_BIT = np.uint64(1 << 61), np.uint64(1 << 57)
_BOGUS_MASK = RESERVED_BIT | TOP_ADDRESS_BIT
# A repeat of the newest entry is an artefact of the recorder unless a tight loop explains it;
# the limit is the one that google/autofdo uses.
STRIDE_LIMIT = np.uint64(0x1000)


class Stacks(NamedTuple):
    """A batch of n samples with m entries, as counting looks at it."""

    entries: U64
    """(m, 3), as in `BranchStacks`."""
    offsets: I64
    """(n + 1,), likewise."""
    spaces: I64
    """(n,), negative for samples to skip."""
    modes: U8
    """(n,), such as CHAINS."""
    weights: U64
    """(n,)"""
    bounds: U64
    """(s, 2): half-open run-time span that holds the whole image in each space."""


class Table(NamedTuple):
    """A hash table with room for c keys, a power of two."""

    keys: U64
    """(c, 4)"""
    values: U64
    """(c, 2)"""
    occupied: U8
    """(c,)"""


KNOWN_BITS = np.uint64(4)
"""A key's last column is `space << KNOWN_BITS | known` (see `counts` for the known bits)."""

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_FROM, _TO, _END, _BRANCH = np.uint64(FROM), np.uint64(TO), np.uint64(END), np.uint64(BRANCH)
_MISPREDICTED, _ABORT, _NOT_TAKEN = np.uint64(MISPREDICTED), np.uint64(ABORT), np.uint64(NOT_TAKEN)
_TYPE_SHIFT, _TYPE_MASK = np.uint64(TYPE_SHIFT), np.uint64(TYPE_MASK)
_SPEC_SHIFT, _SPEC_MASK = np.uint64(SPEC_SHIFT), np.uint64(SPEC_MASK)
_WRONG_PATH = np.uint64(SPEC_WRONG_PATH)
# PERF_BR_ERET, PERF_BR_IRQ, PERF_BR_SERROR, PERF_BR_NO_TX and PERF_BR_EXTEND_ABI (faults, fast
# interrupts and debug exceptions): transfers that no instruction of the program asked for, see
# `stacks.BRANCH_TYPES`.
_FIRST_EXCEPTION, _LAST_EXCEPTION = np.uint64(11), np.uint64(15)
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_C, _MIX_D = np.uint64(0x165667B19E3779F9), np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


@compiled_leaf
def _place(table: Table, a: Word, b: Word, c: Word, d: Word) -> Word:
    """Index of the key (a, b, c, d), or of the free place where it belongs."""
    keys, occupied = table.keys, table.occupied
    mask = np.uint64(len(occupied) - 1)
    h = (a * _MIX_A) ^ ((b + _MIX_B) * _MIX_C) ^ (c * _MIX_D) ^ (d * _MIX_B)
    h ^= h >> _HALF
    h *= _MIX_D
    i = (h ^ (h >> _HALF)) & mask
    while occupied[i] and (
        keys[i, 0] != a or keys[i, 1] != b or keys[i, 2] != c or keys[i, 3] != d
    ):
        i = (i + _ONE) & mask
    return i


@compiled_leaf
def add(table: Table, key: tuple[Word, Word, Word, Word], value: tuple[Word, Word]) -> int:
    """Add to a key's count and mispredictions; 1 if the key is new, else 0."""
    a, b, c, d = key
    i = _place(table, a, b, c, d)
    is_new = not table.occupied[i]
    if is_new:
        table.occupied[i] = 1
        keys = table.keys
        keys[i, 0], keys[i, 1], keys[i, 2], keys[i, 3] = a, b, c, d
    table.values[i, 0] += value[0]
    table.values[i, 1] += value[1]
    return 1 if is_new else 0


@compiled_leaf
def rehash(old: Table, new: Table) -> None:
    """Move a table into a larger, empty one."""
    for i in range(len(old.occupied)):
        if old.occupied[i]:
            k, v = old.keys[i], old.values[i]
            add(new, (k[0], k[1], k[2], k[3]), (v[0], v[1]))


@compiled_leaf
def has_room(stacks: Stacks, i: int, table: Table, used: int) -> bool:
    """Whether all entries of sample `i` leave a quarter of the places free.

    So searches end soon.
    """
    keys = stacks.offsets[i + 1] - stacks.offsets[i]
    return bool(used + keys <= len(table.occupied) - len(table.occupied) // 4)


@compiled_leaf
def is_duplicate(newest: U64, second: U64) -> bool:
    """Whether the second entry is the recorder's copy of the newest one.

    Skylake and its descendants can record the newest branch twice, the copy with another cycle
    count. A loop of straight code shorter than STRIDE_LIMIT repeats legitimately; in a recording
    that kept branches of some types only, any branch may, with others in between.
    """
    if newest[0] != second[0] or newest[1] != second[1]:
        return False
    return bool(newest[1] > newest[0] or newest[0] - newest[1] >= STRIDE_LIMIT)


@compiled_leaf
def _is_exception(flags: Word) -> bool:
    kind = (flags >> _TYPE_SHIFT) & _TYPE_MASK
    return bool(_FIRST_EXCEPTION <= kind <= _LAST_EXCEPTION)


@compiled_leaf
def _is_removed(source: Word, target: Word, flags: Word) -> int:
    """Why an entry is no branch that was executed and taken, or COUNTED."""
    if source == _ZERO and target == _ZERO:
        return EMPTY
    if source == POISON_ADDRESS or target == POISON_ADDRESS:
        return POISON
    if (flags >> _SPEC_SHIFT) & _SPEC_MASK == _WRONG_PATH:
        return WRONG_PATH
    if target & _BOGUS_MASK == RESERVED_BIT:
        return BOGUS_TARGET
    return NOT_TAKEN_ENTRY if flags & _NOT_TAKEN else COUNTED


@compiled_leaf
def fate_of(source: Word, target: Word, flags: Word, inside: bool, mode: int) -> int:
    """Judge one entry by itself."""
    if mode == JOINED:
        return COUNTED if inside else OUTSIDE
    if mode == NOTHING:
        return CALL_STACK
    fate = _is_removed(source, target, flags)
    if fate != COUNTED:
        return fate
    if not inside:
        return OUTSIDE
    return EXCEPTION if _is_exception(flags) else COUNTED


@compiled_leaf
def _known(fate: int, from_in: bool, to_in: bool, has_end: bool) -> Word:
    """The `known` bits of an entry's trace; 0 if it tells nothing."""
    known = _ZERO
    if fate == COUNTED:
        known |= _BRANCH
        if from_in:
            known |= _FROM
    if to_in and (fate == COUNTED or has_end):
        known |= _TO
        if has_end:
            known |= _END
    return known


@compiled_leaf
def _gap_between(after_abort: bool, fate: int, mode: int) -> int:
    """Why the fall-through from a counted entry to the newer one is unknown; else COUNTED."""
    if mode == BRANCHES_ONLY and fate == COUNTED:
        return UNCHAINED
    return ABORTED if after_abort else COUNTED


@compiled_leaf
def _count_stack(stacks: Stacks, i: int, table: Table, tallies: U64) -> int:
    """Count the stack of one sample; the number of keys that were new."""
    stack = stacks.entries[stacks.offsets[i] : stacks.offsets[i + 1]]
    weight, mode = stacks.weights[i], stacks.modes[i]
    space = np.uint64(stacks.spaces[i])
    low, high = stacks.bounds[space, 0], stacks.bounds[space, 1]
    new = 0
    has_end, end, newer_fate, is_abort = False, _ZERO, EMPTY, False
    for k in range(len(stack)):
        source, target, flags = stack[k, 0], stack[k, 1], stack[k, 2]
        from_in, to_in = bool(low <= source < high), bool(low <= target < high)
        fate = fate_of(source, target, flags, from_in or to_in, mode)
        may_repeat = k == 1 and fate == newer_fate == COUNTED and mode == CHAINS
        if may_repeat and is_duplicate(stack[0], stack[1]):
            tallies[DUPLICATE] += weight
            continue
        tallies[fate] += weight
        gap = _gap_between(is_abort, fate, mode) if k > 0 else COUNTED
        if gap != COUNTED:
            tallies[gap] += weight
        is_abort = fate == COUNTED and mode == CHAINS and flags & _ABORT != _ZERO
        newer_fate = fate
        if fate != COUNTED and fate != EXCEPTION:
            has_end = has_end and mode == JOINED
            continue
        known = _known(fate, from_in, to_in, has_end)
        if known:
            key = (
                source if known & _FROM else _ZERO,
                target if known & _TO else _ZERO,
                end if known & _END else _ZERO,
                space << KNOWN_BITS | known,
            )
            missed = weight if known & _BRANCH and flags & _MISPREDICTED else _ZERO
            new += add(table, key, (weight, missed))
        # The older entry's straight line ends at this branch, unless nothing of the program's
        # own ended it here.
        is_end = fate == COUNTED and mode == CHAINS and not flags & _ABORT
        has_end = from_in and (is_end or mode == JOINED)
        end = source
    return new


@compiled_leaf
def count_stacks(
    stacks: Stacks, table: Table, tallies: U64, first: int, used: int
) -> tuple[int, int]:
    """Count the stacks of samples `first`… into the table, as far as it has room.

    Keys are from, to, end and `space << KNOWN_BITS | known`, values count and mispredictions;
    tallies (TALLIES,) counts entries. Returns (first sample not counted, used places); the caller
    grows the table and calls again until all samples are counted.
    """
    for i in range(first, len(stacks.spaces)):
        if stacks.spaces[i] < 0:
            continue
        if not has_room(stacks, i, table, used):
            return i, used
        used += _count_stack(stacks, i, table, tallies)
    return len(stacks.spaces), used
