"""Numbers of perf.data files, shared by the reader and the writer.

Kernel records and sample fields: include/uapi/linux/perf_event.h. Records that perf itself adds:
tools/lib/perf/include/perf/event.h. File header and its features: tools/perf/util/header.h and
tools/perf/Documentation/perf.data-file-format.txt. simpleperf adds records and features of its own
(simpleperf: record.h, record_file_format.h). All fields are little-endian here.
"""

from __future__ import annotations

import struct

# RECORD_*, SAMPLE_* and FORMAT_*, which loops need as well.
from lbr2pgo.native.perf_abi import *  # noqa: F403
from lbr2pgo.native.perf_abi import (
    RECORD_FIRST_PERF_TYPE,
    RECORD_LAST_KERNEL_TYPE,
    RECORD_LAST_PERF_TYPE,
)

MAGIC = b"PERFILE2"
MAGIC_BIG_ENDIAN = MAGIC[::-1]
MAGIC_VERSION_1 = b"PERFFILE"

FILE_HEADER = struct.Struct("<8s8Q32s")
"""Magic, header size, attr entry size, (offset, size) of attrs, data and event types, features."""
PIPE_HEADER = struct.Struct("<8sQ")
SECTION = struct.Struct("<QQ")
RECORD_HEADER = struct.Struct("<IHH")
"""Type, misc, size."""
MAX_RECORD_SIZE = 0xFFFF

KNOWN_RECORDS = frozenset(
    (
        *range(1, RECORD_LAST_KERNEL_TYPE + 1),
        *range(RECORD_FIRST_PERF_TYPE, RECORD_LAST_PERF_TYPE + 1),
    )
)

# PERF_RECORD_MISC_*
MISC_KERNEL = 1
MISC_USER = 2
MISC_MMAP_DATA = 1 << 13
MISC_COMM_EXEC = 1 << 13
MISC_MMAP_BUILD_ID = 1 << 14
MISC_BUILD_ID_SIZE = 1 << 15

# Among the addresses of a call chain: those behind it are the user's.
CONTEXT_USER = (1 << 64) - 512

# PERF_SAMPLE_BRANCH_*: the rest are in `stacks.BRANCH_FILTER_BITS`.
BRANCH_HW_INDEX = 1 << 17
BRANCH_COUNTERS = 1 << 19

# struct perf_event_attr, up to branch_sample_type: type, size, config, period, sample_type,
# read_format, flag bits, wakeup, bp_type, config1, config2, branch_sample_type, sample_regs_user.
ATTR = struct.Struct("<II5QIIQQQQ")
ATTR_SIZE_FIRST = 64
"""Linux 2.6.31 to 2.6.34: up to and without config2."""
ATTR_SIZE = 128
"""The newest size that perf 6.1 takes (PERF_ATTR_SIZE_VER7); a longer one makes it give up."""

# Bits of the flag word of struct perf_event_attr.
ATTR_DISABLED = 1 << 0
ATTR_INHERIT = 1 << 1
ATTR_EXCLUDE_USER = 1 << 4
ATTR_EXCLUDE_KERNEL = 1 << 5
ATTR_EXCLUDE_HV = 1 << 6
ATTR_MMAP = 1 << 8
ATTR_COMM = 1 << 9
ATTR_FREQ = 1 << 10
ATTR_TASK = 1 << 13
PRECISE_IP_SHIFT = 15
ATTR_SAMPLE_ID_ALL = 1 << 18
ATTR_EXCLUDE_GUEST = 1 << 20
ATTR_MMAP2 = 1 << 23
ATTR_COMM_EXEC = 1 << 24

# PERF_TYPE_*
TYPE_HARDWARE = 0
TYPE_SOFTWARE = 1
TYPE_RAW = 4

# union perf_mem_data_src: bits of the operation, and that cache level, snoop, lock and TLB are not
# available.
DATA_OP_LOAD, DATA_OP_STORE = 1 << 1, 1 << 2
_DATA_UNKNOWN = 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26
DATA_LOAD = DATA_OP_LOAD | _DATA_UNKNOWN
DATA_STORE = DATA_OP_STORE | _DATA_UNKNOWN
DATA_NONE = 1 << 0 | _DATA_UNKNOWN
"""Of samples of no access (PERF_MEM_NA)."""

# HEADER_*: bits of the feature map.
FEATURE_BUILD_ID = 2
FEATURE_HOSTNAME = 3
FEATURE_OSRELEASE = 4
FEATURE_VERSION = 5
FEATURE_ARCH = 6
FEATURE_NRCPUS = 7
FEATURE_CPUDESC = 8
FEATURE_CPUID = 9
FEATURE_TOTAL_MEM = 10
FEATURE_CMDLINE = 11
FEATURE_EVENT_DESC = 12
FEATURE_BRANCH_STACK = 15
FEATURE_GROUP_DESC = 17
FEATURE_SAMPLE_TIME = 21
FEATURE_BITS = 256
FEATURE_META_INFO = 129
"""Of simpleperf alone (simpleperf: record_file_format.h)."""

BUILD_ID_BYTES = 20
"""Room for a build-id in records; perf cuts longer ones."""
NAME_ALIGN = 64
"""perf pads the strings of its header to this."""


def align(size: int, to: int) -> int:
    """`size` rounded up to a multiple of `to`, a power of two."""
    return (size + to - 1) & -to


SIMULATED_CPU = "simulated"
"""The cpuid in recordings of the software LBR."""
DATA_ACCESSES = "mem-accesses:u"
"""The event of its loads and stores."""
FETCH_MISSES = "L1-icache-load-misses:u"
"""The event of code that its simulated instruction cache lacked."""
WITHOUT_BRANCHES = FETCH_MISSES, DATA_ACCESSES
"""Events that it samples beside those of branches, and without any."""
