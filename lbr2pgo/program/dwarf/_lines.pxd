from libc.stdint cimport uint32_t


cdef struct Found:
    # What a table says of an address.
    uint32_t is_there
    uint32_t file
    uint32_t line
    uint32_t discriminator
    uint32_t column
