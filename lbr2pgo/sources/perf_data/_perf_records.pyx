"""The records of perf.data: where they end, the few that matter besides samples, and samples.

Layouts: include/uapi/linux/perf_event.h. Records and their fields are reached by pointers; each is
taken only after it was compared with the end of the data, or of the record that holds it.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from lbr2pgo.native.perf_abi cimport (
    CONTEXT_USER_DEFERRED,
    FIRST_CONTEXT,
    FORMAT_GROUP,
    FORMAT_ID,
    FORMAT_LOST,
    FORMAT_TOTAL_TIME_ENABLED,
    FORMAT_TOTAL_TIME_RUNNING,
    RECORD_AUXTRACE,
    RECORD_COMPRESSED,
    RECORD_COMPRESSED2,
    RECORD_FIRST_PERF_TYPE,
    RECORD_FIRST_SIMPLEPERF_TYPE,
    RECORD_HEADER_TRACING_DATA,
    RECORD_LAST_KERNEL_TYPE,
    RECORD_LAST_PERF_TYPE,
    RECORD_LAST_SIMPLEPERF_TYPE,
    RECORD_SAMPLE,
    SAMPLE_BRANCH_STACK,
    SAMPLE_DATA_SRC,
    SAMPLE_CALLCHAIN,
    SAMPLE_RAW,
    SAMPLE_READ,
    SAMPLE_REGS_USER,
    SAMPLE_STACK_USER,
    SAMPLE_WEIGHT,
    SAMPLE_WEIGHT_STRUCT,
)
from lbr2pgo.sources._words cimport WORD, word_at

# Why `whole_records` stopped.
cpdef enum:
    PARTIAL
    SPECIAL
    BAD

# Why a sample can't be read, or not all of it.
cpdef enum:
    UNKNOWN_EVENT
    TOO_SHORT
    BAD_CHAIN
    BAD_STACK
    BAD_ACCESS
    DEFERRED_CHAIN
    TALLIES

# Types from the last one on are counted together, and before it those of simpleperf.
cpdef enum:
    TYPE_COUNTS = 128
    SIMPLEPERF_TYPES = 126

cdef enum:
    READABLE = -1
    ENTRY_WORDS = 3


cdef struct Record:
    const uint8_t* start
    uint32_t kind
    Py_ssize_t size  # of all of it, in bytes
    Py_ssize_t words  # how many whole ones it has


cdef inline Record _peek(const uint8_t* start) noexcept nogil:
    """The record that starts here, of which the header at least is there."""
    cdef Record record
    cdef uint64_t header = word_at(start)
    record.start = start
    record.kind = <uint32_t>header
    record.size = header >> 48
    record.words = record.size // WORD
    return record


cdef inline int _take(const uint8_t[::1] data, Py_ssize_t at, Record* record) except -1 nogil:
    """The record at a place where a whole one is said to be."""
    if 0 <= at <= data.shape[0] - WORD:
        record[0] = _peek(&data[at])
        if WORD <= record.size <= data.shape[0] - at:
            return 0
    with gil:
        raise IndexError(f"there is no whole record at byte {at}")


cdef inline bint _is_special(uint32_t kind) noexcept nogil:
    """Whether a record's extent is more than its size says, or its content is other records."""
    return (
        kind == RECORD_COMPRESSED
        or kind == RECORD_COMPRESSED2
        or kind == RECORD_AUXTRACE
        or kind == RECORD_HEADER_TRACING_DATA
    )


def whole_records(const uint8_t[::1] data, Py_ssize_t start):
    cdef Py_ssize_t at = start
    cdef Record record
    while 0 <= at <= data.shape[0] - WORD:
        record = _peek(&data[at])
        if _is_special(record.kind):
            return at, SPECIAL
        if record.size < WORD:
            return at, BAD
        if record.size > data.shape[0] - at:
            break
        at += record.size
    return at, PARTIAL


cdef inline bint _is_simpleperf(uint32_t kind) noexcept nogil:
    return RECORD_FIRST_SIMPLEPERF_TYPE <= kind <= RECORD_LAST_SIMPLEPERF_TYPE


cdef bint _is_plausible(const uint8_t[::1] data, Py_ssize_t at) except -1 nogil:
    """Whether four records that exist could follow each other here, or fewer up to the end."""
    cdef Record record
    cdef bint is_known
    for _ in range(4):
        if at == data.shape[0]:
            return True
        if at > data.shape[0] - WORD:
            return False
        record = _peek(&data[at])
        is_known = (
            1 <= record.kind <= RECORD_LAST_KERNEL_TYPE
            or RECORD_FIRST_PERF_TYPE <= record.kind <= RECORD_LAST_PERF_TYPE
            or _is_simpleperf(record.kind)
        )
        if not is_known or record.size < WORD:
            return False
        if record.size % WORD and record.kind != RECORD_COMPRESSED:
            return False
        at += record.size
    return at <= data.shape[0]


def next_plausible(const uint8_t[::1] data, Py_ssize_t start):
    cdef Py_ssize_t at
    with nogil:
        for at in range(start, data.shape[0] - WORD + 1):
            # The type's bytes, before anything that costs more.
            if 1 <= data[at] <= RECORD_LAST_PERF_TYPE and not (
                data[at + 1] or data[at + 2] or data[at + 3]
            ) and _is_plausible(data, at):
                break
        else:
            at = -1
    return at


def find_records(
    const uint8_t[::1] data,
    Py_ssize_t start,
    const uint8_t[::1] wanted,
    int64_t[::1] counts,
    int64_t[::1] found,
):
    cdef Py_ssize_t at = start, n = 0
    cdef Record record
    cdef uint32_t kind
    with nogil:
        while at < data.shape[0]:
            _take(data, at, &record)
            kind = min(record.kind, <uint32_t>(TYPE_COUNTS - 1))
            if _is_simpleperf(record.kind):
                kind = SIMPLEPERF_TYPES
            if wanted[kind]:
                if n == found.shape[0]:
                    break
                found[n] = at
                n += 1
            counts[kind] += 1
            at += record.size
    return at, n


# Columns of `Layouts`.
cdef enum:
    IP
    TID
    TIME
    CPU
    ADDR
    REST
    SAMPLE_TYPE
    READ_FORMAT
    HAS_HW_INDEX
    HAS_COUNTERS
    HAS_CHAIN
    USER_REGISTERS
    COLUMNS


cdef class Layouts:
    cdef const int64_t[:, ::1] fields
    cdef Py_ssize_t id_at
    cdef const uint64_t[::1] ids
    cdef const int32_t[::1] id_events

    def __init__(
        self,
        const int64_t[:, ::1] fields,
        Py_ssize_t id_at,
        const uint64_t[::1] ids,
        const int32_t[::1] id_events,
    ):
        self.fields, self.id_at, self.ids, self.id_events = fields, id_at, ids, id_events
        if id_at < 0 or fields.shape[1] != COLUMNS:
            raise ValueError(f"layouts have {COLUMNS} columns, and no id in front of the record")
        for event in range(fields.shape[0]):
            # So whoever has seen that REST lies in the record can read the others.
            if not np.max(fields[event, :REST], initial=0) < fields[event, REST]:
                raise ValueError(f"event {event} has fixed fields behind the others")


cdef class Room:
    cdef uint64_t[:, ::1] entries
    cdef int64_t[::1] offsets
    cdef uint64_t[::1] frames
    cdef int64_t[::1] frame_offsets
    cdef int32_t[::1] pid
    cdef int32_t[::1] tid
    cdef uint64_t[::1] time
    cdef int32_t[::1] event
    cdef int32_t[::1] cpu
    cdef uint64_t[::1] ip
    cdef uint64_t[::1] counters
    cdef uint64_t[:, ::1] accesses
    cdef Py_ssize_t n  # samples in it

    def __init__(
        self, Py_ssize_t samples, Py_ssize_t entries, Py_ssize_t frames=0, *, has_counters=False,
        has_cpus=False, has_accesses=False,
    ):
        self.entries = np.empty((entries, ENTRY_WORDS), np.uint64)
        self.offsets = np.zeros(samples + 1, np.int64)
        self.frames = np.empty(frames, np.uint64)
        self.frame_offsets = np.zeros(samples + 1, np.int64)
        self.pid, self.tid = np.empty(samples, np.int32), np.empty(samples, np.int32)
        self.time, self.ip = np.empty(samples, np.uint64), np.empty(samples, np.uint64)
        self.event = np.empty(samples, np.int32)
        self.cpu = np.empty(samples if has_cpus else 0, np.int32)
        self.counters = np.empty(entries if has_counters else 0, np.uint64)
        self.accesses = np.empty((samples if has_accesses else 0, 2), np.uint64)
        self.n = 0

    def __len__(self):
        return self.n

    def columns(self):
        cdef Py_ssize_t n = self.n, m = self.offsets[self.n]
        return {
            "entries": np.asarray(self.entries[:m]),
            "offsets": np.asarray(self.offsets[: n + 1]),
            "pid": np.asarray(self.pid[:n]),
            "tid": np.asarray(self.tid[:n]),
            "time": np.asarray(self.time[:n]),
            "event": np.asarray(self.event[:n]),
            "ip": np.asarray(self.ip[:n]),
            "cpu": np.asarray(self.cpu[:n]) if len(self.cpu) else None,
            "counters": np.asarray(self.counters[:m]) if len(self.counters) else None,
            "accesses": np.asarray(self.accesses[:n]) if len(self.accesses) else None,
        }

    def call_chains(self):
        cdef Py_ssize_t n = self.n, c = self.frame_offsets[self.n]
        if self.frames.shape[0] == 0:
            return None
        return np.asarray(self.frames[:c]), np.asarray(self.frame_offsets[: n + 1])


cdef inline uint64_t _word(const Record* record, Py_ssize_t i) noexcept nogil:
    """A word of a record, of which the caller knows that it is there."""
    return word_at(record.start + WORD * i)


cdef Py_ssize_t _event_of(const Record* record, Layouts layouts) except -2 nogil:
    """Index of the sample's event; -1 for an unknown id, as perf's evlist__id2evsel decides."""
    cdef uint64_t sample_id
    cdef Py_ssize_t first = 0, end = layouts.ids.shape[0], middle
    if layouts.id_at == 0 or layouts.fields.shape[0] == 1:
        return 0
    if layouts.id_at >= record.words:
        return -1
    sample_id = _word(record, layouts.id_at)
    if sample_id == 0:
        return 0
    while first < end:
        middle = (first + end) // 2
        if layouts.ids[middle] < sample_id:
            first = middle + 1
        else:
            end = middle
    if first == layouts.ids.shape[0] or layouts.ids[first] != sample_id:
        return -1
    return layouts.id_events[first]


cdef inline Py_ssize_t _after_list(
    const Record* record, Py_ssize_t at, Py_ssize_t width
) noexcept nogil:
    """Word behind a count and that many items of `width` words; behind the record if it lies."""
    if at >= record.words or _word(record, at) > <uint64_t>record.words:
        return record.words + 1
    return at + 1 + width * <Py_ssize_t>_word(record, at)


cdef inline Py_ssize_t _after_read(
    const Record* record, Py_ssize_t at, int64_t read_format
) noexcept nogil:
    """Word behind struct read_format (PERF_SAMPLE_READ)."""
    cdef Py_ssize_t times, width
    times = (read_format & FORMAT_TOTAL_TIME_ENABLED != 0) + (
        read_format & FORMAT_TOTAL_TIME_RUNNING != 0
    )
    width = 1 + (read_format & FORMAT_ID != 0) + (read_format & FORMAT_LOST != 0)
    if not read_format & FORMAT_GROUP:
        return at + times + width
    return _after_list(record, at, width) + times


cdef inline Py_ssize_t _after_raw(const Record* record, Py_ssize_t at) noexcept nogil:
    """Word behind a 32-bit size and that many bytes, padded to a word."""
    if at >= record.words:
        return record.words + 1
    return at + <Py_ssize_t>(<uint32_t>_word(record, at) + 4ULL + WORD - 1) // WORD


cdef struct Part:
    Py_ssize_t at  # its first word
    Py_ssize_t count  # of entries, or of words of a call chain


cdef struct Sample:
    Py_ssize_t event
    Part chain
    Part stack
    Py_ssize_t data_source  # the word, 0 where there is none


cdef bint _find_chain(
    const Record* record, const int64_t* fields, Py_ssize_t* at, Part* chain
) noexcept nogil:
    """Find a sample's call chain from word `at` on, and go behind it; whether it fits."""
    cdef Py_ssize_t after
    chain.at = chain.count = 0
    if not fields[SAMPLE_TYPE] & SAMPLE_CALLCHAIN:
        return True
    after = _after_list(record, at[0], 1)
    if after > record.words:
        return False
    if fields[HAS_CHAIN]:
        chain.at, chain.count = at[0] + 1, after - at[0] - 1
    at[0] = after
    return True


cdef bint _find_stack(
    const Record* record, const int64_t* fields, Py_ssize_t* at, Part* stack
) noexcept nogil:
    """Find a sample's entries, of which word `at` says how many there are, and go behind them;
    whether they fit.

    An empty stack may lack the hardware index (kernel/events/core.c, perf_output_sample).
    """
    cdef Py_ssize_t width
    cdef uint64_t count
    stack.at = stack.count = 0
    if at[0] >= record.words:
        return False
    count = _word(record, at[0])
    at[0] += 1
    if count == 0:
        return True
    at[0] += fields[HAS_HW_INDEX]
    width = ENTRY_WORDS + fields[HAS_COUNTERS]
    if count > <uint64_t>record.words or at[0] + width * <Py_ssize_t>count > record.words:
        return False
    stack.at, stack.count = at[0], <Py_ssize_t>count
    at[0] += width * stack.count
    return True


cdef inline Py_ssize_t _after_user(
    const Record* record, const int64_t* fields, Py_ssize_t at
) noexcept nogil:
    """Word behind the user's registers, stack and the weight; behind the record if they lie."""
    cdef int64_t sample_type = fields[SAMPLE_TYPE]
    cdef uint64_t size
    if sample_type & SAMPLE_REGS_USER:  # the ABI, PERF_SAMPLE_REGS_ABI_NONE without registers
        if at >= record.words:
            return record.words + 1
        at += 1 + (fields[USER_REGISTERS] if _word(record, at) else 0)
    if sample_type & SAMPLE_STACK_USER:  # its size, and behind it how much of it there is
        if at >= record.words:
            return record.words + 1
        size = _word(record, at) // WORD
        if size > <uint64_t>record.words:
            return record.words + 1
        at += 1 + (<Py_ssize_t>size + 1 if size else 0)
    return at + (sample_type & (SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT) != 0)


cdef int _find_parts(const Record* record, const int64_t* fields, Sample* sample) noexcept nogil:
    """Find the call chain and the entries of a sample; READABLE, or what does not fit."""
    cdef int64_t sample_type = fields[SAMPLE_TYPE]
    cdef Py_ssize_t at = fields[REST]
    if sample_type & SAMPLE_READ:
        at = _after_read(record, at, fields[READ_FORMAT])
    if not _find_chain(record, fields, &at, &sample.chain):
        return BAD_CHAIN
    sample.stack.at = sample.stack.count = 0
    sample.data_source = 0
    if sample_type & SAMPLE_RAW:
        at = _after_raw(record, at)
    if sample_type & SAMPLE_BRANCH_STACK and not _find_stack(record, fields, &at, &sample.stack):
        return BAD_STACK
    if fields[ADDR] > 0 and sample_type & SAMPLE_DATA_SRC:
        sample.data_source = _after_user(record, fields, at)
        if sample.data_source >= record.words:
            return BAD_ACCESS
    return READABLE


cdef int _judge(const Record* record, Layouts layouts, Sample* sample) except -2 nogil:
    """Find the event and the parts of a sample; READABLE, or why they can't be told."""
    sample.event = _event_of(record, layouts)
    if sample.event < 0:
        return UNKNOWN_EVENT
    if layouts.fields[sample.event, REST] > record.words:
        return TOO_SHORT
    return _find_parts(record, &layouts.fields[sample.event, 0], sample)


cdef inline uint64_t _field(
    const Record* record, Py_ssize_t at, uint64_t otherwise
) noexcept nogil:
    """A fixed field, if the event records it."""
    return _word(record, at) if at > 0 else otherwise


cdef bint _put_chain(const Record* record, Part chain, Room room) except -1 nogil:
    """Append the addresses of a call chain; whether there are more in another record."""
    cdef Py_ssize_t end = room.frame_offsets[room.n], k
    cdef bint is_deferred = False
    cdef int64_t word
    for k in range(chain.count):
        word = <int64_t>_word(record, chain.at + k)
        if word == CONTEXT_USER_DEFERRED:
            is_deferred = True
            break
        if not FIRST_CONTEXT <= word < 0:
            room.frames[end] = <uint64_t>word
            end += 1
    room.frame_offsets[room.n + 1] = end
    return is_deferred


cdef bint _fits(const Sample* sample, Room room) except -1 nogil:
    """Whether there is room for one more sample."""
    return (
        room.n < room.ip.shape[0]
        and room.offsets[room.n] + sample.stack.count <= room.entries.shape[0]
        and room.frame_offsets[room.n] + sample.chain.count <= room.frames.shape[0]
    )


cdef int _put(
    const Record* record, Layouts layouts, const Sample* sample, uint64_t position, Room room
) except -1 nogil:
    """Append a readable sample, but for its call chain, to a room that it fits into."""
    cdef Py_ssize_t n = room.n, m = room.offsets[n], event = sample.event, k
    cdef Part stack = sample.stack
    cdef uint64_t ids = _field(record, layouts.fields[event, TID], <uint64_t>-1)
    room.ip[n] = _field(record, layouts.fields[event, IP], 0)
    room.pid[n] = <int32_t><uint32_t>ids
    room.tid[n] = <int32_t>(ids >> 32)
    room.time[n] = _field(record, layouts.fields[event, TIME], position)
    room.event[n] = <int32_t>event
    if room.cpu.shape[0]:  # the number and 32 bits that are reserved
        room.cpu[n] = <int32_t><uint32_t>_field(record, layouts.fields[event, CPU], <uint64_t>-1)
    for k in range(stack.count):
        room.entries[m + k, 0] = _word(record, stack.at + ENTRY_WORDS * k)
        room.entries[m + k, 1] = _word(record, stack.at + ENTRY_WORDS * k + 1)
        room.entries[m + k, 2] = _word(record, stack.at + ENTRY_WORDS * k + 2)
    if room.counters.shape[0]:
        # Behind all entries; zeros for an event without them.
        for k in range(stack.count):
            room.counters[m + k] = (
                _word(record, stack.at + ENTRY_WORDS * stack.count + k)
                if layouts.fields[event, HAS_COUNTERS] else 0
            )
    if room.accesses.shape[0]:
        room.accesses[n, 0] = room.accesses[n, 1] = 0
        if sample.data_source:
            room.accesses[n, 0] = _word(record, layouts.fields[event, ADDR])
            room.accesses[n, 1] = _word(record, sample.data_source)
    room.offsets[n + 1] = m + stack.count
    room.n = n + 1
    return 0


def read_samples(
    const uint8_t[::1] data,
    Py_ssize_t start,
    uint64_t position,
    Layouts layouts,
    Room room,
    int64_t[::1] tallies,
):
    cdef Py_ssize_t at = start
    cdef Record record
    cdef Sample sample
    cdef int reason
    with nogil:
        while at < data.shape[0]:
            _take(data, at, &record)
            if record.kind == RECORD_SAMPLE:
                reason = _judge(&record, layouts, &sample)
                if reason != READABLE:
                    tallies[reason] += 1
                elif not _fits(&sample, room):
                    break
                else:
                    tallies[DEFERRED_CHAIN] += _put_chain(&record, sample.chain, room)
                    _put(&record, layouts, &sample, position + at, room)
            at += record.size
    return at
