from lbr2pgo.program.elf._bytes cimport Bytes
from lbr2pgo.program.dwarf._entries cimport Abbreviation, Parts, Step, Unit
from lbr2pgo.native.growing cimport Growing

# How a walk over a unit ended.
cpdef enum:
    COMPLETE = 0
    DAMAGED = 1
    NO_DECLARATION = 2
    TOO_MANY_RANGES = 3
    ODD_FORM = 4


cdef class Sections:
    cdef Parts parts
    cdef tuple _owners

    cdef Sections _with(self, object owner)


cdef class Abbreviations:
    cdef Growing _rows
    cdef Growing _steps
    cdef dict _places

    cdef const Abbreviation *rows(self) noexcept nogil
    cdef const Step *steps(self) noexcept nogil
    cdef Py_ssize_t _read(self, Bytes abbrev, const Unit *unit) except -1
