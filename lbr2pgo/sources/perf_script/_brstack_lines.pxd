from libc.stdint cimport int32_t, uint8_t, uint64_t

cdef enum LineKind:
    NOTHING
    COMMENT
    RECORD  # what perf prints of mappings, tasks and the like
    STACK  # entries with addresses, behind a prefix or not
    SYMBOLS  # entries with symbols
    COUNT  # how often the next sample was taken, in aggregated text
    PREFIX  # of a sample whose stack is on another line, or a line of a call stack

cdef enum EntryForm:
    FLAGGED  # FROM/TO/EVENT/…
    FLAGGED_OR_BARE  # or FROM/TO

cdef enum:
    NO_ENTRY = -1
    # An entry takes as many at least, with the blank after it.
    FEWEST_BYTES = 8

cdef struct Prefix:
    bint has_pid
    bint has_time
    bint has_event
    bint has_ip
    bint has_data  # an address of data, or its source; both make an access
    bint has_access
    # What only the whole file tells: a lone ip of digits behind data may be a weight, and one of
    # sixteen that has a blank too little may be an address of data.
    bint may_be_weight
    bint may_be_of_data
    bint is_narrow  # ip is a lone number that could only be an address by its digits
    int32_t pid  # -1 if there is none
    int32_t tid  # -1 if there is none
    int32_t cpu  # -1 if there is none
    uint64_t time  # nanoseconds
    uint64_t ip
    uint64_t address  # of the data, and
    uint64_t data_source  # what was done with it, if there is an access
    uint64_t event  # hash of its name, which stands at
    Py_ssize_t event_start
    Py_ssize_t event_end

cdef struct Entry:
    uint64_t source
    uint64_t target
    uint64_t flags

cdef struct Symbol:
    Py_ssize_t start  # of its name
    Py_ssize_t end
    uint64_t offset

cdef struct SymbolEntry:
    Symbol source
    Symbol target
    uint64_t flags

cdef LineKind classify(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form, Py_ssize_t *body
) noexcept nogil

cdef Py_ssize_t read_prefix(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, bint has_narrow_ips, Prefix *prefix
) noexcept nogil

cdef Py_ssize_t read_entry(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form, Entry *entry
) noexcept nogil

cdef Py_ssize_t read_entries(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form,
    Entry *entries, Py_ssize_t room, Py_ssize_t *count,
) noexcept nogil

cdef Py_ssize_t read_symbols(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, SymbolEntry *entry
) noexcept nogil
