"""The sections .pseudo_probe_desc and .pseudo_probe, as clang writes them.

Source: LLVM 22: lib/MC/MCPseudoProbe.cpp, include/llvm/MC/MCPseudoProbe.h.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from lbr2pgo.program._numbers cimport LARGE_NUMBER, Reader, fixed, leb

DESCRIPTOR_COLUMNS = 4
RECORD_COLUMNS = 11

cdef enum:
    LARGEST = 0xFFFFFFFF
    SMALLEST_DESCRIPTOR = 17  # bytes of one with an empty name
    SMALLEST_RECORD = 10  # bytes of one without probes
    # How a probe is packed (LLVM: IR/PseudoProbe.h, PseudoProbeAttributes)
    SENTINEL = 2
    HAS_DISCRIMINATOR = 4
    IS_DELTA = 0x80


cdef inline uint64_t _u32(const uint8_t[::1] data, Reader *r) noexcept nogil:
    cdef uint64_t value = leb(data, r)
    if value > LARGEST:
        r.problem = LARGE_NUMBER
        return 0
    return value


def read_descriptors(const uint8_t[::1] data):
    cdef Py_ssize_t most = data.shape[0] // SMALLEST_DESCRIPTOR, count = 0, start
    found = np.empty((most, DESCRIPTOR_COLUMNS), np.uint64)
    cdef uint64_t[:, ::1] out = found
    cdef Reader r = Reader(0, 0)
    cdef uint64_t guid, checksum, length
    with nogil:
        while r.at < data.shape[0]:
            start = r.at
            guid = fixed(data, &r, 8)
            checksum = fixed(data, &r, 8)
            length = _u32(data, &r)
            if r.problem or length > <uint64_t>(data.shape[0] - r.at):
                r.at = start
                break
            out[count, 0], out[count, 1] = guid, checksum
            out[count, 2], out[count, 3] = r.at, r.at + length
            r.at += length
            count += 1
    return found[:count].copy(), r.at


cdef struct Node:
    uint32_t site
    uint64_t guid
    uint32_t probes
    uint32_t children


cdef inline Node _node(const uint8_t[::1] data, Reader *r, bint is_inlined) noexcept nogil:
    cdef Node node
    node.site = _u32(data, r) if is_inlined else 0
    node.guid = fixed(data, r, 8)
    node.probes = _u32(data, r)
    node.children = _u32(data, r)
    return node


cdef struct Probe:
    uint32_t index
    uint8_t kind
    uint8_t attributes
    bint is_delta
    uint64_t place  # distance from the probe before, or an address, or a sentinel's GUID
    uint32_t discriminator


cdef inline Probe _probe(const uint8_t[::1] data, Reader *r) noexcept nogil:
    cdef Probe probe
    cdef uint8_t packed
    probe.index = _u32(data, r)
    packed = fixed(data, r, 1)
    probe.kind = packed & 0xF
    probe.attributes = packed >> 4 & 7
    probe.is_delta = packed & IS_DELTA != 0
    probe.place = leb(data, r, True) if probe.is_delta else fixed(data, r, 8)
    probe.discriminator = _u32(data, r) if probe.attributes & HAS_DISCRIMINATOR else 0
    return probe


cdef struct Record:
    uint64_t guid
    uint64_t base_guid  # of the symbol at which the running address starts
    uint64_t start  # the running address where the record starts, if that is known
    uint64_t address  # the running address
    bint is_absolute  # addresses are known without a symbol
    bint is_odd  # neither encoding looks like this
    int64_t nodes
    int64_t probes  # without sentinels
    int64_t depth
    int64_t low  # distance of the lowest probe from the start
    int64_t high


cdef inline void _note(Record *record, const Probe *probe, bint is_first) noexcept nogil:
    """Follow the running address, and what is reached."""
    cdef int64_t distance
    if probe.attributes & SENTINEL:
        record.is_odd |= not is_first or probe.is_delta or record.is_absolute
        record.base_guid = probe.place
        return
    if probe.is_delta:
        record.address += probe.place
    else:
        record.is_odd |= not is_first and not record.is_absolute
        record.address = probe.place
        if is_first:
            record.is_absolute = True
            record.start = probe.place
    distance = <int64_t>(record.address - record.start)
    record.low = min(record.low, distance) if record.probes else distance
    record.high = max(record.high, distance) if record.probes else distance
    record.probes += 1


cdef int _survey(
    const uint8_t[::1] data, Reader *r, Record *record, int64_t[::1] pending
) except -1 nogil:
    """Read a record to its end; `pending` is how many inlined functions are left, by depth."""
    cdef Py_ssize_t depth = 0
    cdef uint32_t i
    cdef bint is_first = True
    cdef Node node
    cdef Probe probe
    pending[0] = 1
    while depth >= 0:
        if pending[depth] == 0:
            depth -= 1
            continue
        pending[depth] -= 1
        node = _node(data, r, depth > 0)
        if record.nodes == 0:
            record.guid = record.base_guid = node.guid
        record.nodes += 1
        record.depth = max(record.depth, depth)
        for i in range(node.probes):
            probe = _probe(data, r)
            if r.problem:
                return 0
            _note(record, &probe, is_first)
            is_first = False
        if r.problem:
            return 0
        depth += 1
        pending[depth] = node.children
    return 0


def survey_records(const uint8_t[::1] data):
    cdef Py_ssize_t most = data.shape[0] // SMALLEST_RECORD, count = 0, start
    found = np.empty((most, RECORD_COLUMNS), np.uint64)
    cdef uint64_t[:, ::1] out = found
    # Every level of a nest takes the bytes of a record: none is deeper than these.
    cdef int64_t[::1] pending = np.empty(most + 2, np.int64)
    cdef Reader r = Reader(0, 0)
    cdef Record record
    cdef uint64_t carried = 0
    cdef bint is_absolute = False
    with nogil:
        while r.at < data.shape[0]:
            start = r.at
            record = Record(0, 0, carried, carried, is_absolute, False, 0, 0, 0, 0, 0)
            _survey(data, &r, &record, pending)
            if r.problem:
                r.at = start
                break
            is_absolute = record.is_absolute
            carried = record.address if is_absolute else 0
            out[count, 0], out[count, 1] = start, record.guid
            out[count, 2], out[count, 3] = record.base_guid, record.start
            out[count, 4], out[count, 5] = record.is_absolute, record.is_odd
            out[count, 6], out[count, 7] = record.nodes, record.probes
            out[count, 8], out[count, 9] = record.low, record.high
            out[count, 10] = record.depth
            count += 1
    return found[:count].copy(), r.at


cdef int _read(
    const uint8_t[::1] data, Reader *r, uint64_t address, Py_ssize_t *nodes, Py_ssize_t *probes,
    int64_t[::1] pending, int32_t[::1] path, uint64_t[::1] node_guid, int32_t[::1] node_parent,
    uint32_t[::1] node_site, uint64_t[::1] probe_address, int32_t[::1] probe_node,
    uint32_t[::1] probe_index, uint8_t[::1] probe_kind, uint8_t[::1] probe_attributes,
    uint32_t[::1] probe_discriminator,
) except -1 nogil:
    """Read a record that `_survey` has seen; `path` is the node around, by depth."""
    cdef Py_ssize_t depth = 0, n, p
    cdef uint32_t i
    cdef Node node
    cdef Probe probe
    pending[0] = 1
    while depth >= 0:
        if pending[depth] == 0:
            depth -= 1
            continue
        pending[depth] -= 1
        node = _node(data, r, depth > 0)
        n = nodes[0]
        nodes[0] += 1
        node_guid[n], node_site[n] = node.guid, node.site
        node_parent[n] = path[depth - 1] if depth else -1
        path[depth] = n
        for i in range(node.probes):
            probe = _probe(data, r)
            if probe.attributes & SENTINEL:
                continue
            address = address + probe.place if probe.is_delta else probe.place
            p = probes[0]
            probes[0] += 1
            probe_address[p], probe_node[p], probe_index[p] = address, n, probe.index
            probe_kind[p], probe_attributes[p] = probe.kind, probe.attributes
            probe_discriminator[p] = probe.discriminator
        depth += 1
        pending[depth] = node.children
    return 0


def read_records(
    const uint8_t[::1] data,
    const int64_t[::1] offset,
    const uint64_t[::1] start,
    Py_ssize_t nodes,
    Py_ssize_t probes,
    Py_ssize_t depth,
):
    node_guid, node_parent = np.empty(nodes, np.uint64), np.empty(nodes, np.int32)
    node_site = np.empty(nodes, np.uint32)
    address, node = np.empty(probes, np.uint64), np.empty(probes, np.int32)
    index, discriminator = np.empty(probes, np.uint32), np.empty(probes, np.uint32)
    kind, attributes = np.empty(probes, np.uint8), np.empty(probes, np.uint8)
    cdef int64_t[::1] pending = np.empty(depth + 2, np.int64)
    cdef int32_t[::1] path = np.empty(depth + 1, np.int32)
    cdef uint64_t[::1] node_guids = node_guid, addresses = address
    cdef int32_t[::1] node_parents = node_parent, probe_nodes = node
    cdef uint32_t[::1] node_sites = node_site, indices = index, discriminators = discriminator
    cdef uint8_t[::1] kinds = kind, all_attributes = attributes
    cdef Py_ssize_t k, nodes_read = 0, probes_read = 0
    cdef Reader r = Reader(0, 0)
    with nogil:
        for k in range(offset.shape[0]):
            r.at = offset[k]
            _read(
                data, &r, start[k], &nodes_read, &probes_read, pending, path, node_guids,
                node_parents, node_sites, addresses, probe_nodes, indices, kinds, all_attributes,
                discriminators,
            )
    nodes_found = node_guid[:nodes_read], node_parent[:nodes_read], node_site[:nodes_read]
    return nodes_found, (
        address[:probes_read], node[:probes_read], index[:probes_read], kind[:probes_read],
        attributes[:probes_read], discriminator[:probes_read],
    )
