"""Walking the records of perf.data: bounds, the few that matter besides samples, and samples.

`data` is always a read-only array of bytes. Layouts: include/uapi/linux/perf_event.h. Nothing is
read past a record's own size, whatever its counts claim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.words import WORD, word_at
from lbr2pgo.support.arrays import I32, I64, U64, Bytes

Int = Any
"""An int outside, an int64 in compiled code, which the type checker can't tell."""

_U8, _U16, _U48, _U63 = np.uint64(8), np.uint64(16), np.uint64(48), np.uint64(63)
_TYPE = np.uint64(0xFFFFFFFF)

# Why `whole_records` stopped.
PARTIAL, SPECIAL, BAD = 0, 1, 2
# Why a sample can't be read.
UNKNOWN_EVENT, TOO_SHORT, BAD_STACK, TALLIES = -1, -2, -3, 3
# Columns of `Layouts.fields`.
IP_AT, TID_AT, TIME_AT, REST_AT, SAMPLE_TYPE, READ_FORMAT, HAS_HW_INDEX, HAS_COUNTERS = range(8)
FIELDS = 8
TYPE_COUNTS = 128
"""Types from the last one on are counted together."""


class Layouts(NamedTuple):
    """How the samples of each event are laid out."""

    fields: I64
    """(events, FIELDS): positions as words from the record's start, -1 where there is no field."""
    id_at: int
    """Word that holds the sample's id; 0 where all samples are the first event's."""
    ids: U64
    """(k,), ascending."""
    id_events: I32
    """(k,): the event of each id."""


class Samples(NamedTuple):
    """Room for one batch: n samples and m entries."""

    entries: U64
    """(m, 3)"""
    offsets: I64
    """(n + 1,)"""
    pid: I32
    tid: I32
    time: U64
    event: I32
    ip: U64
    counters: U64
    """(m,), or (0,) where no event records branch counters."""


class _Record(NamedTuple):
    """One record: the bytes it is among, where it starts, and how many whole words it has."""

    data: Bytes
    at: Int
    words: Int


@compiled_leaf
def _word(record: _Record, i: Int) -> np.uint64:
    return word_at(record.data, record.at + WORD * i)


@compiled_leaf
def _size(header: np.uint64) -> Int:
    return np.int64(header >> _U48)


@compiled_leaf
def _is_special(kind: np.uint64) -> bool:
    """Whether a record's extent is more than its size says, or its content is other records."""
    return bool(
        kind == abi.RECORD_COMPRESSED
        or kind == abi.RECORD_COMPRESSED2
        or kind == abi.RECORD_AUXTRACE
        or kind == abi.RECORD_HEADER_TRACING_DATA
    )


@compiled_leaf
def whole_records(data: Bytes, start: int) -> tuple[int, int]:
    """Where the run of whole plain records from `start` on ends, and why.

    PARTIAL: the next record is not all there; SPECIAL: it is a compressed one or has data behind
    it; BAD: its size is less than that of its header.
    """
    at = start
    while at + WORD <= len(data):
        header = word_at(data, at)
        if _is_special(header & _TYPE):
            return at, SPECIAL
        size = _size(header)
        if size < WORD:
            return at, BAD
        if at + size > len(data):
            break
        at += size
    return at, PARTIAL


@compiled_leaf
def _plausible(data: Bytes, at: int) -> bool:
    """Whether four records that exist could follow each other here, or fewer up to the end."""
    for _ in range(4):
        if at == len(data):
            return True
        if at + WORD > len(data):
            return False
        header = word_at(data, at)
        kind, size = header & _TYPE, _size(header)
        known = 1 <= kind <= abi.RECORD_LAST_KERNEL_TYPE or (
            abi.RECORD_FIRST_PERF_TYPE <= kind <= abi.RECORD_LAST_PERF_TYPE
        )
        if not known or size < WORD or (size % WORD and kind != abi.RECORD_COMPRESSED):
            return False
        at += size
    return at <= len(data)


@compiled_leaf
def next_plausible(data: Bytes, start: int) -> int:
    """First position from `start` on where records seem to begin again; -1 if there is none."""
    for at in range(start, len(data) - WORD + 1):
        is_small = data[at + 1] == 0 and data[at + 2] == 0 and data[at + 3] == 0
        if 1 <= data[at] <= abi.RECORD_LAST_PERF_TYPE and is_small and _plausible(data, at):
            return at
    return -1


@compiled_leaf
def find_records(
    data: Bytes, start: int, wanted: npt.NDArray[np.bool_], counts: I64, found: I64
) -> tuple[int, int]:
    """Positions of the records of `wanted` types among whole records, from `start` on.

    `wanted` and `counts` have shape (TYPE_COUNTS,); every record passed is added to `counts`.
    Returns where it stopped (before the end only if `found` is full) and how many it found.
    """
    at, n = start, 0
    while at < len(data):
        header = word_at(data, at)
        kind = np.int64(min(header & _TYPE, np.uint64(TYPE_COUNTS - 1)))
        if wanted[kind]:
            if n == len(found):
                break
            found[n] = at
            n += 1
        counts[kind] += 1
        at += _size(header)
    return at, n


@compiled_leaf
def _event_of(record: _Record, layouts: Layouts) -> Int:
    """Index of the sample's event; -1 for an unknown id, as perf's evlist__id2evsel decides."""
    if layouts.id_at == 0 or len(layouts.fields) == 1:
        return 0
    if layouts.id_at >= record.words:
        return -1
    sample_id = _word(record, layouts.id_at)
    if sample_id == 0:
        return 0
    first, end = 0, len(layouts.ids)  # np.searchsorted would load much of Numba
    while first < end:
        middle = (first + end) // 2
        if layouts.ids[middle] < sample_id:
            first = middle + 1
        else:
            end = middle
    if first == len(layouts.ids) or layouts.ids[first] != sample_id:
        return -1
    return np.int64(layouts.id_events[first])


@compiled_leaf
def _after_read(record: _Record, at: Int, read_format: Int) -> Int:
    """Position after `struct read_format` (PERF_SAMPLE_READ)."""
    times = (read_format & 1) + (read_format >> 1 & 1)
    width = 1 + (read_format >> 2 & 1) + (read_format >> 4 & 1)
    if not read_format & abi.FORMAT_GROUP:
        return at + times + width
    return _after_run(record, at, width) + times


@compiled_leaf
def _after_run(record: _Record, at: Int, width: Int) -> Int:
    """Position after a count and that many items of `width` words; past the end if it lies."""
    if at >= record.words or _word(record, at) > np.uint64(record.words):
        return record.words + 1
    return at + 1 + width * np.int64(_word(record, at))


@compiled_leaf
def _after_raw(record: _Record, at: Int) -> Int:
    """Position after a 32-bit size and that many bytes, padded to a word."""
    if at >= record.words:
        return record.words + 1
    return at + np.int64((_word(record, at) & _TYPE) + np.uint64(4 + WORD - 1)) // WORD


@compiled_leaf
def _stack_at(record: _Record, fields: I64) -> Int:
    """Word that holds the number of entries, past the end if the record is too short for it."""
    at = fields[REST_AT]
    if fields[SAMPLE_TYPE] & abi.SAMPLE_READ:
        at = _after_read(record, at, fields[READ_FORMAT])
    if fields[SAMPLE_TYPE] & abi.SAMPLE_CALLCHAIN:
        at = _after_run(record, at, 1)
    if fields[SAMPLE_TYPE] & abi.SAMPLE_RAW:
        at = _after_raw(record, at)
    return at


@compiled_leaf
def _stack_of(record: _Record, fields: I64) -> tuple[Int, Int]:
    """Where a sample's entries begin and how many there are; -1 if they don't fit the record.

    An empty stack may lack the hardware index (kernel/events/core.c, perf_output_sample).
    """
    if not fields[SAMPLE_TYPE] & abi.SAMPLE_BRANCH_STACK:
        return 0, 0
    at = _stack_at(record, fields)
    if at >= record.words:
        return 0, -1
    count = _word(record, at)
    if count == 0:
        return 0, 0
    at += 1 + fields[HAS_HW_INDEX]
    width = 3 + fields[HAS_COUNTERS]
    if count > np.uint64(record.words) or at + width * np.int64(count) > record.words:
        return 0, -1
    return at, np.int64(count)


@compiled_leaf
def _put(
    record: _Record,
    fields: I64,
    stack: tuple[Int, Int],
    position: Int,
    out: Samples,
    n: int,
    m: Int,
) -> None:
    """Copy the fixed fields and the entries of one sample, all known to lie in the record."""
    out.ip[n] = _word(record, fields[IP_AT]) if fields[IP_AT] > 0 else np.uint64(0)
    pair = _word(record, fields[TID_AT]) if fields[TID_AT] > 0 else np.uint64(0xFFFFFFFFFFFFFFFF)
    out.pid[n] = np.int32(np.uint32(pair & _TYPE))
    out.tid[n] = np.int32(np.uint32(pair >> np.uint64(32)))
    out.time[n] = _word(record, fields[TIME_AT]) if fields[TIME_AT] > 0 else np.uint64(position)
    at, count = stack
    for k in range(count):
        out.entries[m + k, 0] = _word(record, at + 3 * k)
        out.entries[m + k, 1] = _word(record, at + 3 * k + 1)
        out.entries[m + k, 2] = _word(record, at + 3 * k + 2)
    out.offsets[n + 1] = m + count
    if len(out.counters):
        _put_counters(record, at + 3 * count, count, fields, out.counters[m : m + count])


@compiled_leaf
def _put_counters(record: _Record, at: Int, count: Int, fields: I64, counters: U64) -> None:
    """Copy the counters behind the entries; zeros for an event without them."""
    for k in range(count):
        counters[k] = _word(record, at + k) if fields[HAS_COUNTERS] else np.uint64(0)


@compiled_leaf
def _sample(record: _Record, layouts: Layouts) -> tuple[Int, Int, Int]:
    """Event, place of the entries and their number; a negative event says what is wrong."""
    event = _event_of(record, layouts)
    if event < 0:
        return UNKNOWN_EVENT, 0, 0
    if layouts.fields[event, REST_AT] > record.words:
        return TOO_SHORT, 0, 0
    at, count = _stack_of(record, layouts.fields[event])
    if count < 0:
        return BAD_STACK, 0, 0
    return event, at, count


@compiled_leaf
def read_samples(
    data: Bytes, start: int, position: int, layouts: Layouts, out: Samples, n: int, tallies: I64
) -> tuple[int, int]:
    """Append the samples among whole records to `out`, of which `n` rows are taken.

    `position` is the place of `data[0]` in the stream of records. Returns where it stopped
    (before the end only if `out` is full) and the new `n`. Samples that can't be read are counted
    in `tallies`, shape (TALLIES,), by their reason's absolute value less one.
    """
    at = start
    while at < len(data):
        header = word_at(data, at)
        size = _size(header)
        if header & _TYPE == abi.RECORD_SAMPLE:
            record = _Record(data, at, size // WORD)
            event, entries_at, count = _sample(record, layouts)
            m = out.offsets[n]
            if event < 0:
                tallies[-event - 1] += 1
            elif n == len(out.ip) or m + count > len(out.entries):
                break
            else:
                _put(record, layouts.fields[event], (entries_at, count), position + at, out, n, m)
                out.event[n] = event
                n += 1
        at += size
    return at, n
