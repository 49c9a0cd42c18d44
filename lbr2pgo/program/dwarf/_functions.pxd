from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct Die:
    int64_t offset
    int32_t parent
    int32_t is_subprogram


cdef struct Description:
    int64_t linkage_name
    int64_t name
    int64_t elsewhere
    int64_t moved
    uint32_t decl_line
    uint32_t call_file
    uint32_t call_line
    uint32_t discriminator
