"""From the lines of `perf script -F …brstack` text to samples in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbr2pgo.native.brstack_entry import (
    NO_ENTRY,
    find_flags,
    read_entry,
    read_flags,
    split_symbol,
    split_symbols,
)
from lbr2pgo.native.brstack_lines import (
    COMMENT,
    COUNT,
    FEWEST_BYTES,
    HYBRID,
    NARROW_IPS,
    PREFIX,
    STACK,
    SYMBOLS,
    TIMED,
    WITH_ADDRESSES,
    WITH_SYMBOLS,
    Scratch,
    classify,
)
from lbr2pgo.native.brstack_prefix import (
    EVENT,
    FOUND,
    HAS_EVENT,
    HAS_IP,
    HAS_PID,
    HAS_TIME,
    IP,
    PID,
    PLACE,
    PREFIX_SIZE,
    TID,
    TIME,
    read_prefix,
    read_words,
)
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import ZERO, hash_text, line_end, read_decimal, skip_blanks
from lbr2pgo.support.arrays import I64, U64, Text

# What was lost, u64[LOSSES].
LOST_LINES, LOST_ENTRIES, LOST_COUNTS, LOST_ZEROS = range(4)
LOSSES = 4

# What is known of a sample before its stack is reached, u64[STATE_SIZE]: its prefix, and
WEIGHT, FRAMES, IS_OPEN, LAST_TIME = (PREFIX_SIZE + i for i in range(4))
"""WEIGHT: the aggregated count, 0 if there was none. FRAMES: lines of its call stack so far.
IS_OPEN: lines of it have been read. LAST_TIME: of the last sample that had one."""
STATE_SIZE = PREFIX_SIZE + 4

# Columns of a sample, u64.
S_PID, S_TID, S_TIME, S_EVENT, S_IP, S_WEIGHT = range(6)
SAMPLE_SIZE = 6

# Columns of an entry's two symbols: where the names stand, and the offsets.
NAME_COLUMNS = 4


class Tables(NamedTuple):
    """What `read_samples` reads with and writes to."""

    facts: I64
    """(FACTS,), from `survey`."""
    hashes: U64
    """(k,): of the names of the events, in the order of their numbers."""
    state: U64
    """(STATE_SIZE,): the sample that is not complete, kept from call to call."""
    samples: U64
    """(n, SAMPLE_SIZE)"""
    ends: I64
    """(n,): entries up to and with each sample."""
    entries: U64
    """(m, 3); in a file with symbols the hash of a name stands for its address."""
    names: I64
    """(m, NAME_COLUMNS) in a file with symbols, else (0, NAME_COLUMNS)."""
    offsets: U64
    """(m, 2) in a file with symbols, else (0, 2)."""
    used: I64
    """(2,): rows of samples and of entries that are filled."""
    losses: U64
    """(LOSSES,), added to."""
    scratch: Scratch


_NO, _YES = np.uint64(0), np.uint64(1)
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_KEYS = HAS_PID | HAS_TIME | HAS_EVENT | HAS_IP
_MOST_COMM_WORDS = 3


@compiled_leaf
def _is_sample(prefix: U64, count: int) -> bool:
    """Whether a line without a stack looks like the prefix of a sample."""
    if prefix[FOUND] & (HAS_TIME | HAS_EVENT | HAS_IP):
        return True
    return prefix[FOUND] & HAS_PID != _NO and count <= _MOST_COMM_WORDS


@compiled_leaf
def _event_index(prefix: U64, hashes: U64) -> np.uint64:
    if prefix[FOUND] & HAS_EVENT:
        for i in range(len(hashes)):
            if hashes[i] == prefix[EVENT]:
                return np.uint64(i)
    return _NONE


@compiled_leaf
def _put_sample(tables: Tables, place: np.uint64) -> None:
    """Add the sample that the state holds; `place` stands in for a time."""
    state, row = tables.state, tables.samples[tables.used[0]]
    if state[FOUND] & HAS_TIME:
        state[LAST_TIME] = state[TIME]
    row[S_PID] = state[PID]
    row[S_TID] = state[TID]
    row[S_TIME] = state[LAST_TIME] if tables.facts[TIMED] else place
    row[S_EVENT] = _event_index(state, tables.hashes)
    row[S_IP] = state[IP]
    row[S_WEIGHT] = max(state[WEIGHT], _YES)
    state[WEIGHT] = state[FRAMES] = state[IS_OPEN] = _NO
    tables.ends[tables.used[0]] = tables.used[1]
    tables.used[0] += 1


@compiled_leaf
def _open(state: U64, prefix: U64) -> None:
    """Let a sample begin with this prefix."""
    for i in range(PREFIX_SIZE):
        state[i] = prefix[i]
    state[IS_OPEN] = _YES
    state[FRAMES] = _NO


@compiled_leaf
def _add_frame(state: U64, prefix: U64) -> None:
    """Let a call stack go on with this line; its first address is the sample's."""
    if not state[IS_OPEN]:
        _open(state, prefix)
    elif not state[FRAMES] and not state[FOUND] & HAS_IP:
        state[IP] = prefix[IP]
        state[FOUND] |= HAS_IP
    state[FRAMES] += _YES


@compiled_leaf
def _read_stack(text: Text, place: int, end: int, tables: Tables) -> None:
    """Add the entries of a line with addresses.

    What follows the stack on the line starts differently; an entry that can't be read ends the
    stack, because what comes after it does not follow on.
    """
    entries, used = tables.entries, tables.used[1]
    while place < end and used < len(entries):
        after = read_entry(text, place, end, entries[used])
        if after == NO_ENTRY:
            if text[place] == ZERO:
                tables.losses[LOST_ENTRIES] += _YES
            break
        used += 1
        place = skip_blanks(text, after, end)
    tables.used[1] = used


@compiled_leaf
def _put_symbol(text: Text, start: int, end: int, side: int, tables: Tables) -> None:
    """Note one symbol of the next entry: where its name stands, its hash, and the offset."""
    row = tables.used[1]
    name_end, offset, _ = split_symbol(text, start, end)
    tables.names[row, 2 * side] = start
    tables.names[row, 2 * side + 1] = name_end
    tables.offsets[row, side] = offset
    tables.entries[row, side] = hash_text(text, start, name_end)


@compiled_leaf
def _read_symbols(text: Text, place: int, end: int, tables: Tables) -> None:
    """Add the entries of a line with symbols."""
    while place < end and tables.used[1] < len(tables.names):
        flags_start = find_flags(text, place, end)
        if flags_start == end:
            break
        flags, after = read_flags(text, flags_start, end)
        middle = split_symbols(text, place, flags_start)
        if middle == NO_ENTRY:
            tables.losses[LOST_ENTRIES] += _YES
            break
        _put_symbol(text, place, middle, 0, tables)
        _put_symbol(text, middle + 1, flags_start, 1, tables)
        tables.entries[tables.used[1], 2] = flags
        tables.used[1] += 1
        place = skip_blanks(text, after, end)


@compiled_leaf
def _set_weight(text: Text, start: int, end: int, tables: Tables) -> None:
    """Keep an aggregated count for the next sample."""
    if tables.state[WEIGHT]:
        tables.losses[LOST_COUNTS] += _YES
    weight, after = read_decimal(text, start, end)
    tables.state[WEIGHT] = weight
    if weight == _NO:
        tables.losses[LOST_ZEROS if after > start else LOST_LINES] += _YES


@compiled_leaf
def _end_sample(tables: Tables, place: np.uint64) -> None:
    """Add the sample that is not complete, if there is one: it has no stack."""
    if tables.state[IS_OPEN]:
        _put_sample(tables, place)


@compiled_leaf
def _read_stack_line(
    text: Text, kind: int, body: int, end: int, prefix: U64, words: int, tables: Tables
) -> None:
    """Read a line with a stack, which completes the sample before it unless it has a prefix."""
    place = prefix[PLACE]
    if words or not tables.state[IS_OPEN]:
        _end_sample(tables, place)
        _open(tables.state, prefix)
    if kind == STACK:
        _read_stack(text, body, end, tables)
    else:
        _read_symbols(text, body, end, tables)
    _put_sample(tables, place)


@compiled_leaf
def _read_prefix_line(prefix: U64, words: int, tables: Tables) -> None:
    """Read a line without a stack: part of a call stack, a sample's head, or a whole sample."""
    place, is_hybrid = prefix[PLACE], tables.facts[HYBRID] != 0
    found = prefix[FOUND]
    if not _is_sample(prefix, words):
        _end_sample(tables, place)
        tables.losses[LOST_LINES] += _YES
    elif is_hybrid and found & _KEYS == HAS_IP:
        _add_frame(tables.state, prefix)
    else:
        _end_sample(tables, place)
        _open(tables.state, prefix)
        if found & HAS_IP or not is_hybrid:
            _put_sample(tables, place)


@compiled_leaf
def _read_other_line(
    text: Text, kind: int, start: int, end: int, place: np.uint64, tables: Tables
) -> None:
    """Read a line that is no part of a sample."""
    if kind == COMMENT:
        return
    _end_sample(tables, place)
    if kind == COUNT:
        _set_weight(text, start, end, tables)
    elif kind == SYMBOLS:
        tables.losses[LOST_LINES] += _YES


@compiled_leaf
def read_samples(text: Text, start: int, end: int, base: int, tables: Tables) -> int:
    """Read the samples of whole lines, `text[start:end]`; `text` stands at `base` in the file.

    Returns where it stopped: `end`, or the line that the tables had no room for.
    """
    words, prefix, entry = tables.scratch
    tables.used[0] = tables.used[1] = 0
    has_symbols = tables.facts[WITH_SYMBOLS] and not tables.facts[WITH_ADDRESSES]
    while start < end and tables.used[0] + 2 <= len(tables.samples):
        stop = line_end(text, start, end)
        if tables.used[1] + (stop - start) // FEWEST_BYTES + 1 > len(tables.entries):
            break
        kind, body = classify(text, start, stop, entry)
        if kind in (STACK, PREFIX) or (kind == SYMBOLS and has_symbols):
            count = read_words(text, start, body, words)
            read_prefix(text, start, words, count, tables.facts[NARROW_IPS], prefix)
            prefix[PLACE] = np.uint64(base + start)
            if kind == PREFIX:
                _read_prefix_line(prefix, count, tables)
            else:
                _read_stack_line(text, kind, body, stop, prefix, count, tables)
        else:
            _read_other_line(text, kind, start, stop, np.uint64(base + start), tables)
        start = stop + 1
    return min(start, end)
