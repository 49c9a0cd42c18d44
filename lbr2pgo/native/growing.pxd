"""Tables of C structs that grow while a loop fills them without the GIL."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc


cdef struct Growing:
    char *data
    size_t row  # bytes of one row
    Py_ssize_t count
    Py_ssize_t room


cdef inline Growing growing(size_t row) noexcept nogil:
    """An empty table."""
    cdef Growing table
    table.data, table.row, table.count, table.room = NULL, row, 0, 0
    return table


cdef inline int _grow(Growing *table) except -1 nogil:
    cdef Py_ssize_t room = 2 * table.room + 64
    cdef char *data = <char *>realloc(table.data, room * table.row)
    if data is NULL:
        raise MemoryError
    table.data, table.room = data, room
    return 0


cdef inline void *add(Growing *table) except NULL nogil:
    """One row more, not yet filled; rows may move whenever one is added."""
    if table.count == table.room:
        _grow(table)
    table.count += 1
    return table.data + (table.count - 1) * table.row


cdef inline bytes content(const Growing *table):
    """All rows, for `np.frombuffer`."""
    return PyBytes_FromStringAndSize(table.data, table.count * table.row)


cdef inline void release(Growing *table) noexcept nogil:
    """Give the memory back."""
    free(table.data)
    table.data, table.count, table.room = NULL, 0, 0
