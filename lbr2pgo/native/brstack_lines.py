"""The lines of `perf script -F …brstack` text: what each is, and what no single line tells.

A sample is one line, or several: a count (in aggregated text), a line that only has a prefix, the
addresses of a call stack, and the branch stack last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbr2pgo.native.brstack_entry import NO_ENTRY, find_flags, module_end, read_entry
from lbr2pgo.native.brstack_prefix import (
    EVENT,
    EVENT_END,
    EVENT_START,
    FOUND,
    HAS_EVENT,
    HAS_IP,
    HAS_TIME,
    IS_NARROW,
    MOST_WORDS,
    read_prefix,
    read_words,
)
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import (
    LETTER_X,
    ZERO,
    is_digit,
    is_hex_digit,
    line_end,
    skip_blanks,
    starts_with,
    word_end,
)
from lbr2pgo.support.arrays import I64, U64, Text

# What a line is.
NOTHING, COMMENT, RECORD, STACK, SYMBOLS, COUNT, PREFIX = range(7)

# Facts about a whole file, i64[FACTS].
HYBRID, NARROW_IPS, TIMED, WITH_ADDRESSES, WITH_SYMBOLS, EVENTS, PREVIOUS = range(7)
"""HYBRID: the stack stands on a line of its own. NARROW_IPS: addresses stand without perf's
blanks. TIMED: samples have a time. EVENTS: number of different events. PREVIOUS: what the line
before was."""
FACTS = 7


class Scratch(NamedTuple):
    """Room that the kernels work in: making arrays in them would cost the time of compiling it."""

    words: I64
    """(MOST_WORDS, 2)"""
    prefix: U64
    """(PREFIX_SIZE,)"""
    entry: U64
    """(3,)"""


FEWEST_BYTES = 12
"""An entry and a blank take at least this much text, with symbols of one letter."""

_HASH, _COLON, _BLANK, _SLASH, _OPEN, _BRACKET = (ord(c) for c in "#: /([")
# How people remark on samples that they keep as test cases (LLVM's llvm-profgen tests do).
_REMARK = np.frombuffer(b"//", dtype=np.uint8)
_RECORD_MARK = np.frombuffer(b"PERF_RECORD_", dtype=np.uint8)
_GLUED_WIDTHS = (17, 18)


@compiled_leaf
def _is_entry(text: Text, place: int, end: int, entry: U64) -> bool:
    if end - place < FEWEST_BYTES or text[place] != ZERO or text[place + 1] != LETTER_X:
        return False
    return read_entry(text, place, end, entry) != NO_ENTRY


@compiled_leaf
def _is_count(text: Text, place: int, end: int) -> bool:
    """Whether a line is nothing but a decimal number, which starts it."""
    here = place
    while here < end and is_digit(text[here]):
        here += 1
    return here > place and skip_blanks(text, here, end) == end


@compiled_leaf
def _find_body(text: Text, place: int, end: int, entry: U64) -> tuple[int, int]:
    """Find the first entry with addresses or the record's name: what it is, and where."""
    for _ in range(MOST_WORDS):
        place = skip_blanks(text, place, end)
        if place >= end:
            break
        if _is_entry(text, place, end, entry):
            return STACK, place
        if starts_with(text, place, end, _RECORD_MARK):
            return RECORD, place
        place = word_end(text, place, end)
    return PREFIX, end


@compiled_leaf
def _glued_address_end(text: Text, place: int, end: int, width: int) -> int:
    """End of the address that fills `width` columns from here, `place` if there is none."""
    start = skip_blanks(text, place, end)
    after = place + width
    if not start < after <= end:
        return place
    for i in range(start, after):
        if not is_hex_digit(text[i]):
            return place
    return after


@compiled_leaf
def _location_end(text: Text, place: int, end: int) -> int:
    """End of ` SYMBOL (DSO)` after a sample's address, `place` if that is not here."""
    if place >= end or text[place] != _BLANK:
        return place
    for i in range(place, end - 2):
        is_dso = text[i + 2] == _SLASH or text[i + 2] == _BRACKET
        if is_dso and text[i] == _BLANK and text[i + 1] == _OPEN:
            return module_end(text, i + 1, end)
    return place


@compiled_leaf
def _symbols_start(text: Text, place: int, end: int) -> int:
    """Where the first symbol of a line starts, whose first entry ends at `end`.

    perf prints no blank between an address and the symbol after it (perf: builtin-script.c
    perf_sample__fprintf_brstacksym), so the address is told by its width.
    """
    start = place
    for i in range(end - 2, place, -1):
        if text[i] == _COLON and text[i + 1] == _BLANK:
            start = i + 1
            break
    here = start
    while True:
        width = _GLUED_WIDTHS[0] if here == place else _GLUED_WIDTHS[1]
        after = _glued_address_end(text, here, end, width)
        if after > here:
            return _location_end(text, after, end)
        number = skip_blanks(text, here, end)
        after = word_end(text, number, end)
        if start > place or after >= end or not _is_pid(text, number, after):
            return number
        here = after


@compiled_leaf
def _is_pid(text: Text, place: int, end: int) -> bool:
    for i in range(place, end):
        if not is_digit(text[i]) and not (text[i] == _SLASH and i > place):
            return False
    return place < end


@compiled_leaf
def classify(text: Text, place: int, end: int, entry: U64) -> tuple[int, int]:
    """What the line `text[place:end]` is, and where its prefix ends.

    `entry`, u64[3], is scratch.
    """
    start = skip_blanks(text, place, end)
    if start == end:
        return NOTHING, end
    if text[start] == _HASH or starts_with(text, start, end, _REMARK):
        return COMMENT, end
    if start == place and _is_count(text, place, end):
        return COUNT, end
    kind, body = _find_body(text, start, end, entry)
    if kind == PREFIX:
        flags = find_flags(text, start, end)
        if flags < end:
            return SYMBOLS, _symbols_start(text, place, flags)
    return kind, body


@compiled_leaf
def _note_event(prefix: U64, facts: I64, hashes: U64, spans: I64) -> None:
    """Add the prefix's event to those known, as long as there is room."""
    count = facts[EVENTS]
    for i in range(count):
        if hashes[i] == prefix[EVENT]:
            return
    if count < len(hashes):
        hashes[count] = prefix[EVENT]
        spans[count, 0] = np.int64(prefix[EVENT_START])
        spans[count, 1] = np.int64(prefix[EVENT_END])
        facts[EVENTS] = count + 1


@compiled_leaf
def _note_prefix(kind: int, words: int, prefix: U64, facts: I64) -> None:
    found = prefix[FOUND]
    if found & IS_NARROW:
        facts[NARROW_IPS] = 1
    if found & HAS_TIME:
        facts[TIMED] = 1
    if kind == PREFIX:
        is_hybrid = found & (HAS_TIME | HAS_EVENT) and not found & HAS_IP
    else:
        facts[WITH_ADDRESSES if kind == STACK else WITH_SYMBOLS] = 1
        is_hybrid = words == 0 and facts[PREVIOUS] == PREFIX
    if is_hybrid:
        facts[HYBRID] = 1


@compiled_leaf
def survey(
    text: Text,
    start: int,
    end: int,
    facts: I64,
    hashes: U64,
    spans: I64,
    records: I64,
    scratch: Scratch,
) -> tuple[int, int]:
    """Note facts and events of whole lines, and find the lines that perf printed of records.

    `hashes` u64[k] and `spans` i64[k, 2] get each new event's hash and place; `records` i64[r, 2]
    the places of record lines. Returns where it stopped (`end`, or where `records` was full) and
    how many records it found.
    """
    words, prefix, entry = scratch
    found = 0
    while start < end and found < len(records):
        stop = line_end(text, start, end)
        kind, body = classify(text, start, stop, entry)
        if kind == RECORD:
            records[found, 0] = start
            records[found, 1] = stop
            found += 1
        elif kind in (STACK, SYMBOLS, PREFIX):
            count = read_words(text, start, body, words)
            read_prefix(text, start, words, count, facts[NARROW_IPS], prefix)
            _note_prefix(kind, count, prefix, facts)
            if prefix[FOUND] & HAS_EVENT:
                _note_event(prefix, facts, hashes, spans)
        facts[PREVIOUS] = kind
        start = stop + 1
    return min(start, end), found
