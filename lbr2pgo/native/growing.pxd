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


cdef inline int _grow(Growing *table, Py_ssize_t rows) except -1 nogil:
    cdef Py_ssize_t room = 2 * table.room + 64 + rows
    cdef char *data = <char *>realloc(table.data, room * table.row)
    if data is NULL:
        raise MemoryError
    table.data, table.room = data, room
    return 0


cdef inline void *add(Growing *table) except NULL nogil:
    """One row more, not yet filled; rows may move whenever one is added."""
    return add_many(table, 1)


cdef inline void *add_many(Growing *table, Py_ssize_t rows) except NULL nogil:
    """So many rows more."""
    if rows > table.room - table.count:
        _grow(table, rows)
    table.count += rows
    return table.data + (table.count - rows) * table.row


cdef inline bytes content(const Growing *table):
    """All rows, for `np.frombuffer`."""
    return PyBytes_FromStringAndSize(table.data, table.count * table.row)


cdef inline void release(Growing *table) noexcept nogil:
    """Give the memory back."""
    free(table.data)
    table.data, table.count, table.room = NULL, 0, 0
