"""From the lines of `perf script -F …brstack` text to samples in arrays.

A sample is one line, or several: a count (in aggregated text), a line that only has a prefix, the
addresses of a call stack, and the branch stack last.
"""

from typing import NamedTuple

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from lbr2pgo.sources.perf_script._brstack_lines cimport (
    COMMENT, COUNT, FEWEST_BYTES, FLAGGED, FLAGGED_OR_BARE, NO_ENTRY, NOTHING, PREFIX, RECORD,
    STACK, SYMBOLS, Entry, EntryForm, LineKind, Prefix, Symbol, SymbolEntry, classify,
    read_entries, read_entry, read_prefix, read_symbols,
)
from lbr2pgo.sources._text cimport hash_text, line_end, read_decimal, skip_blanks

cdef enum:
    MOST_EVENTS = 256
    # A line that is nothing but an address of one digit, and its end.
    FEWEST_BYTES_OF_A_SAMPLE = 2
    FEWEST_BYTES_OF_A_FRAME = 2
    # More than anybody looks at.
    MOST_FRAMES = 1 << 16
    MOST_COMM_WORDS = 3
    NO_EVENT = -1


@cython.final
cdef class Survey:
    cdef public bint is_timed
    cdef readonly bint is_hybrid, has_accesses, has_seen_entries
    cdef readonly list event_names, records
    cdef EntryForm _form
    cdef bint _has_narrow_ips, _has_data, _has_ips_behind_data, _has_addresses, _has_symbols
    cdef bint _has_lines, _begins_with_stack
    cdef bint _ends_with_number  # which may be a pid or a frame
    cdef Py_ssize_t _addresses  # lines with nothing else that end what was read
    cdef bint _has_other_lines
    cdef Py_ssize_t _addresses_to_blank  # that begin it, if a blank line follows; else -1
    cdef LineKind _previous
    cdef uint64_t[::1] _events
    cdef Py_ssize_t _event_count

    def __init__(self):
        self.event_names = []
        self.records = []
        self._form = FLAGGED_OR_BARE
        self._previous = NOTHING
        self._events = np.zeros(MOST_EVENTS, np.uint64)
        self._addresses_to_blank = -1

    @property
    def has_symbols(self):
        return self._has_symbols and not self._has_addresses

    def part(self):
        cdef Survey part = Survey()
        part._form = self._form
        part.has_seen_entries = self.has_seen_entries
        return part

    def merge(self, Survey part):
        cdef Py_ssize_t i
        self.is_timed |= part.is_timed
        if part._begins_with_stack and self._previous == PREFIX:
            self._note_call_stack()
        if part._addresses_to_blank >= 0:
            self._note_blank_behind(self._addresses + part._addresses_to_blank)
        self._addresses = part._addresses + (0 if part._has_other_lines else self._addresses)
        self._has_other_lines |= part._has_other_lines
        self.is_hybrid |= part.is_hybrid
        self.has_accesses |= part.has_accesses
        self._has_narrow_ips |= part._has_narrow_ips
        self._has_data |= part._has_data
        self._has_ips_behind_data |= part._has_ips_behind_data
        self._has_addresses |= part._has_addresses
        self._has_symbols |= part._has_symbols
        if part._has_lines:
            self._previous = part._previous
            self._ends_with_number = part._ends_with_number
        self.records += part.records
        for i in range(part._event_count):
            self._add_event(part._events[i], part.event_names[i])

    def add(self, const uint8_t[::1] text, Py_ssize_t base):
        cdef Py_ssize_t stop, place = 0, end = text.shape[0]
        cdef const uint8_t *start = &text[0] if end else NULL
        with nogil:
            while place < end:
                stop = line_end(start, place, end)
                self._add_line(start, place, stop, base)
                place = stop + 1

    cdef int _add_line(
        self, const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Py_ssize_t base
    ) except -1 nogil:
        cdef Py_ssize_t body
        cdef LineKind kind = classify(text, place, end, self._form, &body)
        if kind == RECORD:
            with gil:
                self.records.append((text[place:end], base + place))
        elif kind == NOTHING and place == end:
            if not self._has_other_lines:
                self._addresses_to_blank = self._addresses
            self._note_blank_behind(self._addresses)
        elif kind == STACK or kind == SYMBOLS or kind == PREFIX:
            if kind != PREFIX and not self.has_seen_entries:
                self._note_form(text, kind, body, end)
            self._note_prefix(text, kind, place, body)
        if kind != PREFIX:
            self._addresses = 0
        self._has_other_lines |= self._addresses == 0
        self._previous = kind
        self._has_lines = True
        return 0

    cdef void _note_form(
        self, const uint8_t *text, LineKind kind, Py_ssize_t place, Py_ssize_t end
    ) noexcept nogil:
        """Note what entries look like: the first one tells.

        Where it has flags, one without is cut.
        """
        cdef Entry entry
        self.has_seen_entries = True
        if kind == SYMBOLS or read_entry(text, place, end, FLAGGED, &entry) != NO_ENTRY:
            self._form = FLAGGED

    cdef int _note_prefix(
        self, const uint8_t *text, LineKind kind, Py_ssize_t place, Py_ssize_t end
    ) except -1 nogil:
        cdef Prefix prefix
        cdef Py_ssize_t words = read_prefix(text, place, end, self._has_narrow_ips, &prefix)
        self._has_addresses |= kind == STACK
        self._has_symbols |= kind == SYMBOLS
        self._has_narrow_ips |= prefix.is_narrow
        self._has_data |= prefix.has_data
        self._has_ips_behind_data |= (
            prefix.has_data and prefix.has_ip and not prefix.may_be_weight
        )
        self.is_timed |= prefix.has_time
        self.has_accesses |= prefix.has_access
        if kind == PREFIX:
            self.is_hybrid |= (
                prefix.has_time or prefix.has_event or prefix.has_data
            ) and not prefix.has_ip
            self._ends_with_number = words == 1 and prefix.has_pid
            self._addresses = self._addresses + 1 if _is_frame(&prefix) else 0
        elif words == 0:
            if self._previous == PREFIX:
                self._note_call_stack()
            self._begins_with_stack |= not self._has_lines
        if prefix.has_event and self.event_index(&prefix) == NO_EVENT:
            with gil:
                self._name_event(text, &prefix)
        return 0

    cdef int _name_event(self, const uint8_t *text, const Prefix *prefix) except -1:
        """Number the event that a prefix names.

        Apart, since a function with a Python object takes the GIL to give it up, each time.
        """
        name = text[prefix.event_start:prefix.event_end]
        return self._add_event(prefix.event, name.decode("utf-8", "replace"))

    cdef void settle(self, Prefix *prefix) noexcept nogil:
        """Take an ip away that, as the whole file tells, is none."""
        if (prefix.may_be_weight and not self._has_ips_behind_data) or (
            prefix.may_be_of_data and self._has_data
        ):
            prefix.has_ip = False
            prefix.ip = 0

    cdef void _note_blank_behind(self, Py_ssize_t addresses) noexcept nogil:
        """Note a blank line: samples without stacks follow each other, only call stacks end so."""
        self.is_hybrid |= addresses > 1

    cdef void _note_call_stack(self) noexcept nogil:
        """Note that the line before a stack belongs to it: a frame, even if it is a lone number."""
        self.is_hybrid = True
        self._has_narrow_ips |= self._ends_with_number

    cdef int _add_event(self, uint64_t event, name) except -1:
        """Number one more event if it is new, as long as there is room."""
        cdef Py_ssize_t i
        for i in range(self._event_count):
            if self._events[i] == event:
                return 0
        if self._event_count < MOST_EVENTS:
            self._events[self._event_count] = event
            self._event_count += 1
            self.event_names.append(name)
        return 0

    cdef Py_ssize_t event_index(self, const Prefix *prefix) except -2 nogil:
        """The number of the event that a prefix names, NO_EVENT if it names none that is known."""
        cdef Py_ssize_t i
        if prefix.has_event:
            for i in range(self._event_count):
                if self._events[i] == prefix.event:
                    return i
        return NO_EVENT


cdef struct Pending:
    # What is known of a sample before its stack is reached.
    Prefix prefix
    uint64_t weight  # the aggregated count, 0 if there was none
    bint is_open  # lines of the sample have been read
    Py_ssize_t frames  # lines of its call stack among them
    uint64_t last_time  # of the last sample that had one


@cython.final
cdef class OpenSample:
    cdef Pending pending
    cdef uint64_t[::1] frames

    def __init__(self, uint64_t last_time=0):
        self.pending.last_time = last_time
        self.frames = np.empty(0, np.uint64)

    @property
    def is_open(self):
        return bool(self.pending.is_open or self.pending.weight)

    @property
    def last_time(self):
        return self.pending.last_time

    @last_time.setter
    def last_time(self, uint64_t time):
        self.pending.last_time = time


cdef struct Sample:
    uint64_t time
    uint64_t ip
    uint64_t weight
    uint64_t address
    uint64_t data_source
    int64_t end  # of its entries
    int64_t frame_end
    int64_t event
    int32_t pid
    int32_t tid
    int32_t cpu
    int32_t unused


cdef struct Losses:
    uint64_t lines
    uint64_t entries
    uint64_t counts
    uint64_t zeros
    uint64_t chains


SAMPLE = np.dtype(
    [("time", "u8"), ("ip", "u8"), ("weight", "u8"), ("address", "u8"), ("data_source", "u8"),
     ("end", "i8"), ("frame_end", "i8"), ("event", "i8"),
     ("pid", "i4"), ("tid", "i4"), ("cpu", "i4"), ("unused", "i4")]
)


class ReadSamples(NamedTuple):
    samples: object
    entries: object
    frames: object
    names: object
    offsets: object
    losses: dict
    after: OpenSample


@cython.final
cdef class SampleReader:
    cdef Survey _survey
    cdef bint _has_symbols
    cdef Pending _pending
    cdef Losses _losses
    cdef Sample[::1] _samples
    cdef uint64_t[:, ::1] _entries
    cdef uint64_t[::1] _frames
    cdef int64_t[:, :, ::1] _names
    cdef uint64_t[:, ::1] _offsets
    cdef Py_ssize_t _sample_count, _entry_count, _frame_count

    def __init__(self, Survey survey):
        self._survey = survey
        self._has_symbols = survey.has_symbols
        self._make_room(0)

    def read(self, const uint8_t[::1] text, Py_ssize_t base, OpenSample before):
        cdef Py_ssize_t end = text.shape[0]
        cdef const uint8_t *start = &text[0] if end else NULL
        cdef OpenSample after = OpenSample()
        cdef Py_ssize_t open_frames = before.frames.shape[0]
        self._make_room(end)
        self._pending = before.pending
        self._frames[:open_frames] = before.frames
        self._frame_count = open_frames
        self._losses = Losses(0, 0, 0, 0, 0)
        self._sample_count = self._entry_count = 0
        with nogil:
            self._read_lines(start, end, base)
        after.pending = self._pending
        n, m = self._sample_count, self._entry_count
        f = self._samples[n - 1].frame_end if n else 0
        after.frames = np.array(self._frames[f : self._frame_count])
        k = m if self._has_symbols else 0
        return ReadSamples(
            np.array(self._samples[:n]), np.array(self._entries[:m]), np.array(self._frames[:f]),
            self._names_in(text, k), np.array(self._offsets[:k]), self._losses, after,
        )

    def _names_in(self, const uint8_t[::1] text, Py_ssize_t entries):
        """The names of the symbols in so many entries, by their hashes."""
        hashes, first = np.unique(self._entries[:entries, :2], return_index=True)
        places = np.reshape(self._names[:entries], (-1, 2))[first].tolist()
        return {h: bytes(text[a:b]) for h, (a, b) in zip(hashes.tolist(), places)}

    def _make_room(self, Py_ssize_t size):
        """Have room for all that so much text can hold; what is not used takes no memory."""
        entries = size // FEWEST_BYTES + 1
        if self._entries is not None and entries <= self._entries.shape[0]:
            return
        names = entries if self._has_symbols else 0
        # A sample may have begun before the text.
        self._samples = np.empty(size // FEWEST_BYTES_OF_A_SAMPLE + 2, SAMPLE)
        self._entries = np.empty((entries, 3), np.uint64)
        self._frames = np.empty(size // FEWEST_BYTES_OF_A_FRAME + 1 + MOST_FRAMES, np.uint64)
        self._names = np.empty((names, 2, 2), np.int64)
        self._offsets = np.empty((names, 2), np.uint64)

    cdef int _read_lines(
        self, const uint8_t *text, Py_ssize_t end, Py_ssize_t base
    ) except -1 nogil:
        cdef Py_ssize_t stop, place = 0
        while place < end:
            stop = line_end(text, place, end)
            self._read_line(text, place, stop, base + place)
            place = stop + 1
        return 0

    cdef int _read_line(
        self, const uint8_t *text, Py_ssize_t start, Py_ssize_t end, Py_ssize_t place
    ) except -1 nogil:
        cdef Py_ssize_t words, body
        cdef Prefix prefix
        cdef LineKind kind = classify(text, start, end, self._survey._form, &body)
        if kind == STACK or kind == PREFIX or (kind == SYMBOLS and self._has_symbols):
            words = read_prefix(text, start, body, self._survey._has_narrow_ips, &prefix)
            if prefix.may_be_weight or prefix.may_be_of_data:
                self._survey.settle(&prefix)
            if kind == PREFIX:
                return self._read_prefix_line(&prefix, words, place)
            return self._read_stack_line(text, kind, body, end, &prefix, words, place)
        return self._read_other_line(text, kind, start, end, place)

    cdef int _read_prefix_line(
        self, const Prefix *prefix, Py_ssize_t words, Py_ssize_t place
    ) except -1 nogil:
        """Read a line without a stack: part of a call stack, a sample's head, or a whole one."""
        if not _is_sample(prefix, words):
            self._end_sample(place)
            self._losses.lines += 1
        elif self._survey.is_hybrid and _is_frame(prefix):
            self._add_frame(prefix)
        else:
            self._end_sample(place)
            self._open(prefix)
            if prefix.has_ip or not self._survey.is_hybrid:
                self._put_sample(place)
        return 0

    cdef int _read_stack_line(
        self, const uint8_t *text, LineKind kind, Py_ssize_t body, Py_ssize_t end,
        const Prefix *prefix, Py_ssize_t words, Py_ssize_t place,
    ) except -1 nogil:
        """Read a line with a stack, which completes the sample before it if it has no prefix."""
        if words or not self._pending.is_open:
            self._end_sample(place)
            self._open(prefix)
        if kind == STACK:
            self._read_entries(text, body, end)
        else:
            self._read_symbols(text, body, end)
        return self._put_sample(place)

    cdef int _read_other_line(
        self, const uint8_t *text, LineKind kind, Py_ssize_t start, Py_ssize_t end,
        Py_ssize_t place,
    ) except -1 nogil:
        """Read a line that is no part of a sample."""
        if kind == COMMENT:
            return 0
        self._end_sample(place)
        if kind == COUNT:
            self._set_weight(text, start, end)
        elif kind == SYMBOLS:
            self._losses.lines += 1
        return 0

    cdef void _set_weight(
        self, const uint8_t *text, Py_ssize_t start, Py_ssize_t end
    ) noexcept nogil:
        """Keep an aggregated count for the next sample."""
        cdef Py_ssize_t after
        if self._pending.weight:
            self._losses.counts += 1
        after = read_decimal(text, start, end, &self._pending.weight)
        if after == start:
            self._losses.lines += 1
        elif self._pending.weight == 0:
            self._losses.zeros += 1

    cdef int _read_entries(
        self, const uint8_t *text, Py_ssize_t place, Py_ssize_t end
    ) except -1 nogil:
        """Add the entries of a line with addresses.

        What follows the stack on the line starts differently; an entry that can't be read ends the
        stack, because what comes after it does not follow on.
        """
        cdef Py_ssize_t found, first = self._entry_count
        cdef Entry *rows = <Entry *>&self._entries[first, 0]  # with its columns
        place = read_entries(
            text, place, end, self._survey._form, rows, self._entries.shape[0] - first, &found
        )
        self._entry_count += found
        self._losses.entries += place < end and text[place] == b"0"
        return 0

    cdef int _read_symbols(
        self, const uint8_t *text, Py_ssize_t place, Py_ssize_t end
    ) except -1 nogil:
        """Add the entries of a line with symbols."""
        cdef Py_ssize_t after
        cdef SymbolEntry entry
        while place < end:
            after = read_symbols(text, place, end, &entry)
            if after == NO_ENTRY:
                self._losses.entries += 1
            if after == NO_ENTRY or after == place:
                break
            self._put_symbol(text, &entry.source, 0)
            self._put_symbol(text, &entry.target, 1)
            self._entries[self._entry_count, 2] = entry.flags
            self._entry_count += 1
            place = skip_blanks(text, after, end)
        return 0

    cdef int _put_symbol(
        self, const uint8_t *text, const Symbol *symbol, Py_ssize_t side
    ) except -1 nogil:
        """Note one symbol of the next entry: where its name stands, its hash, and the offset."""
        cdef Py_ssize_t row = self._entry_count
        self._names[row, side, 0] = symbol.start
        self._names[row, side, 1] = symbol.end
        self._offsets[row, side] = symbol.offset
        self._entries[row, side] = hash_text(text, symbol.start, symbol.end)
        return 0

    cdef void _open(self, const Prefix *prefix) noexcept nogil:
        """Let a sample begin with this prefix."""
        self._pending.prefix = prefix[0]
        self._pending.is_open = True
        self._pending.frames = 0

    cdef int _add_frame(self, const Prefix *prefix) except -1 nogil:
        """Let a call stack go on with this line; its first address is the sample's."""
        if not self._pending.is_open:
            self._open(prefix)
        elif not self._pending.frames and not self._pending.prefix.has_ip:
            self._pending.prefix.has_ip = True
            self._pending.prefix.ip = prefix.ip
        if self._pending.frames < MOST_FRAMES:
            self._frames[self._frame_count] = prefix.ip
            self._frame_count += 1
        elif self._pending.frames == MOST_FRAMES:
            self._losses.chains += 1
        self._pending.frames += 1
        return 0

    cdef int _end_sample(self, Py_ssize_t place) except -1 nogil:
        """Add the sample that is not complete, if there is one: it has no stack."""
        return self._put_sample(place) if self._pending.is_open else 0

    cdef int _put_sample(self, Py_ssize_t place) except -1 nogil:
        """Add the pending sample; `place` stands in for a time."""
        cdef const Prefix *prefix = &self._pending.prefix
        if prefix.has_time:
            self._pending.last_time = prefix.time
        self._samples[self._sample_count] = Sample(
            time=self._pending.last_time if self._survey.is_timed else <uint64_t>place,
            ip=prefix.ip,
            weight=max(self._pending.weight, <uint64_t>1),
            address=prefix.address,
            data_source=prefix.data_source,
            end=self._entry_count,
            frame_end=self._frame_count,
            event=self._survey.event_index(prefix),
            pid=prefix.pid,
            tid=prefix.tid,
            cpu=prefix.cpu,
            unused=0,
        )
        self._sample_count += 1
        self._pending.weight = 0
        self._pending.is_open = False
        self._pending.frames = 0
        return 0


cdef bint _is_frame(const Prefix *prefix) noexcept nogil:
    """Whether a line looks like one of a call stack: an address and nothing else is known."""
    return prefix.has_ip and not (
        prefix.has_pid or prefix.has_time or prefix.has_event or prefix.has_data
    )


cdef bint _is_sample(const Prefix *prefix, Py_ssize_t words) noexcept nogil:
    """Whether a line without a stack looks like the prefix of a sample."""
    if prefix.has_time or prefix.has_event or prefix.has_ip or prefix.has_data:
        return True
    return prefix.has_pid and words <= MOST_COMM_WORDS
