"""Rows of a sample profile, made of one function after the other."""

from collections import namedtuple
from itertools import pairwise

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from lbr2pgo.native.growing cimport Growing, add, content, growing, release
from lbr2pgo.native.row_ids cimport RowSums
from lbr2pgo.native.sums cimport product, saturating

from lbr2pgo.profiles.llvm._groups import grouped

ScopeColumns = namedtuple("ScopeColumns", "parent function line discriminator")
PlaceColumns = namedtuple("PlaceColumns", "scope line discriminator factor code calls")
CodeColumns = namedtuple("CodeColumns", "counts size is_body")
CallColumns = namedtuple("CallColumns", "callee counts")


cdef struct Entry:
    # That a location of a context ran, or called. Those of a function are sorted by three numbers.
    int64_t context
    uint64_t location
    int64_t callee  # -1 for none
    uint64_t count


cdef struct Row:
    int64_t context
    int64_t line
    int64_t discriminator
    uint64_t count


cdef struct Call:
    int64_t row
    int64_t callee
    uint64_t count


cdef struct Context:
    int64_t parent  # -1 for none
    int64_t line
    int64_t discriminator
    int64_t name
    uint64_t total


cdef Context _context
cdef Row _row
cdef Call _call
CONTEXT = np.asarray(<Context[:1]>&_context).dtype
ROW = np.asarray(<Row[:1]>&_row).dtype
CALL = np.asarray(<Call[:1]>&_call).dtype


cdef int _by_location(const void *one, const void *other) noexcept nogil:
    cdef const Entry *a = <const Entry *>one
    cdef const Entry *b = <const Entry *>other
    if a.context != b.context:
        return -1 if a.context < b.context else 1
    if a.location != b.location:
        return -1 if a.location < b.location else 1
    return (a.callee > b.callee) - (a.callee < b.callee)


cdef inline uint64_t _location(uint32_t line, uint32_t discriminator) noexcept nogil:
    return <uint64_t>line << 32 | discriminator


cdef class _Made:
    """What was made of some functions."""
    cdef RowSums contexts  # their totals by their parent's row and one, location, and name
    cdef Growing entries, rows, calls

    def __init__(self):
        self.contexts = RowSums()
        self.entries, self.rows = growing(sizeof(Entry)), growing(sizeof(Row))
        self.calls = growing(sizeof(Call))

    def __dealloc__(self):
        release(&self.entries)
        release(&self.rows)
        release(&self.calls)

    cdef int put_entry(
        self, int64_t context, uint64_t location, int64_t callee, uint64_t count
    ) except -1 nogil:
        cdef Entry *entry = <Entry *>add(&self.entries)
        entry.context, entry.location = context, location
        entry.callee, entry.count = callee, count
        return 0

    cdef int put_rows(self) except -1 nogil:
        """Rows and calls of a function, of what is known of its locations."""
        cdef const Entry *entries = <const Entry *>self.entries.data
        cdef const Entry *entry
        cdef Row *row = NULL
        cdef Call *call = NULL
        cdef Py_ssize_t i
        qsort(self.entries.data, self.entries.count, sizeof(Entry), _by_location)
        for i in range(self.entries.count):
            entry = &entries[i]
            if i == 0 or entry.context != entries[i - 1].context or (
                entry.location != entries[i - 1].location
            ):
                row, call = <Row *>add(&self.rows), NULL
                row.context, row.count = entry.context, 0
                row.line, row.discriminator = entry.location >> 32, <uint32_t>entry.location
            if entry.callee < 0:
                row.count = max(row.count, entry.count)
            elif call is not NULL and call.callee == entry.callee:
                call.count += entry.count
            else:
                call = <Call *>add(&self.calls)
                call.row = self.rows.count - 1
                call.callee, call.count = entry.callee, entry.count
        return 0

    cdef int add_to_parents(self, Py_ssize_t first) except -1 nogil:
        """Let contexts from `first` on have the samples of what is inlined into them."""
        cdef uint64_t[::1] total = self.contexts.sums
        cdef uint64_t outer
        cdef Py_ssize_t i
        for i in range(self.contexts.ids.used - 1, first - 1, -1):  # behind their parents
            outer = self.contexts.ids.keys[i, 0]
            if outer:
                total[outer - 1] = saturating(total[outer - 1], total[i])
        return 0

    def tables(self):
        return (
            self._contexts(),
            np.frombuffer(content(&self.rows), ROW).copy(),
            np.frombuffer(content(&self.calls), CALL).copy(),
        )

    def _contexts(self):
        cdef const uint64_t[:, ::1] keys = self.contexts.ids.keys
        table = np.empty(self.contexts.ids.used, CONTEXT)
        cdef Context[::1] out = table
        cdef Py_ssize_t i
        with nogil:
            for i in range(out.shape[0]):
                out[i].parent = <int64_t>keys[i, 0] - 1
                out[i].line, out[i].discriminator = keys[i, 1] >> 32, <uint32_t>keys[i, 1]
                out[i].name, out[i].total = keys[i, 2], self.contexts.sums[i]
        return table


cdef class FunctionRows:
    cdef const int64_t[::1] parent, code, calls
    cdef const int32_t[::1] function, scope
    cdef const uint32_t[::1] call_line, call_discriminator, line, discriminator
    cdef const uint64_t[::1] factor, count, call_count
    cdef const uint8_t[::1] size, is_body
    cdef const int64_t[::1] callee
    cdef int64_t[::1] context  # of each scope: its row among those that are made with it
    # Scopes and places by the function around them that stands alone, and where each has its own.
    cdef int64_t[::1] scopes, places, scope_bounds, place_bounds

    def __init__(self, scopes, places, code, calls, Py_ssize_t functions):
        self.parent, self.function, self.call_line, self.call_discriminator = scopes
        (
            self.scope, self.line, self.discriminator, self.factor, self.code, self.calls
        ) = places
        self.count, self.size, self.is_body = code
        self.callee, self.call_count = calls
        self.context = np.empty(self.parent.shape[0], np.int64)
        around = np.empty(self.parent.shape[0], np.int64)
        self._stand_alone(around)
        self.scopes, self.scope_bounds = grouped(around, functions)
        self.places, self.place_bounds = grouped(np.append(around, -1)[places.scope], functions)

    def _stand_alone(self, int64_t[::1] around):
        """Fill in the function around each scope that is not inlined."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.parent.shape[0]):
                if self.parent[i] < 0:
                    around[i] = self.function[i]
                else:
                    around[i] = around[self.parent[i]]

    def pieces(self, Py_ssize_t places):
        bounds = np.asarray(self.place_bounds)
        inner = np.searchsorted(bounds, np.arange(places, len(self.places), places)).tolist()
        return list(pairwise([0, *inner, len(bounds) - 1]))

    def of(self, pair):
        cdef _Made made = _Made()
        cdef Py_ssize_t function, first = pair[0], past = pair[1]
        with nogil:
            for function in range(first, past):
                if self.scope_bounds[function] < self.scope_bounds[function + 1]:
                    self._put_function(made, function)
        return made.tables()

    cdef int _put_function(self, _Made made, Py_ssize_t function) except -1 nogil:
        cdef Py_ssize_t i, first = made.contexts.ids.used
        for i in range(self.scope_bounds[function], self.scope_bounds[function + 1]):
            self._put_context(made, self.scopes[i])
        made.entries.count = 0
        for i in range(self.place_bounds[function], self.place_bounds[function + 1]):
            self._put_place(made, self.places[i])
        made.put_rows()
        return made.add_to_parents(first)

    cdef int _put_context(self, _Made made, Py_ssize_t scope) except -1 nogil:
        cdef int64_t parent = self.parent[scope]
        cdef uint64_t outer = 0, location = 0
        if parent >= 0:
            outer = self.context[parent] + 1
            location = _location(self.call_line[scope], self.call_discriminator[scope])
        self.context[scope] = made.contexts.add(outer, location, self.function[scope], 0)
        return 0

    cdef int _put_place(self, _Made made, Py_ssize_t place) except -1 nogil:
        """Take in the instructions of a place, and the calls from there."""
        cdef int64_t i, context = self.context[self.scope[place]]
        cdef uint64_t location = _location(self.line[place], self.discriminator[place])
        cdef uint64_t weight = 0, most = 0
        cdef bint is_body = False
        for i in range(self.code[place], self.code[place + 1]):
            weight = saturating(weight, product(self.count[i], self.size[i]))
            most = max(most, self.count[i])
            is_body |= self.is_body[i]
        made.contexts.sums[context] = saturating(made.contexts.sums[context], weight)
        if is_body:
            made.put_entry(context, location, -1, product(most, self.factor[place]))
        for i in range(self.calls[place], self.calls[place + 1]):
            made.put_entry(context, location, self.callee[i], self.call_count[i])
        return 0
