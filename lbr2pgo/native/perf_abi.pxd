"""Numbers of perf.data files that loops and `model.perf_abi` share, which hands them on."""

# PERF_RECORD_*
cpdef enum:
    RECORD_MMAP = 1
    RECORD_LOST = 2
    RECORD_COMM = 3
    RECORD_EXIT = 4
    RECORD_THROTTLE = 5
    RECORD_UNTHROTTLE = 6
    RECORD_FORK = 7
    RECORD_SAMPLE = 9
    RECORD_MMAP2 = 10
    RECORD_AUX = 11
    RECORD_LOST_SAMPLES = 13
    RECORD_CALLCHAIN_DEFERRED = 22
    RECORD_LAST_KERNEL_TYPE = RECORD_CALLCHAIN_DEFERRED
    RECORD_HEADER_ATTR = 64
    RECORD_HEADER_EVENT_TYPE = 65
    RECORD_HEADER_TRACING_DATA = 66
    RECORD_HEADER_BUILD_ID = 67
    RECORD_FINISHED_ROUND = 68
    RECORD_AUXTRACE = 71
    RECORD_EVENT_UPDATE = 78
    RECORD_HEADER_FEATURE = 80
    RECORD_COMPRESSED = 81
    RECORD_COMPRESSED2 = 83
    RECORD_FIRST_PERF_TYPE = RECORD_HEADER_ATTR
    RECORD_LAST_PERF_TYPE = 86

# PERF_SAMPLE_*
cpdef enum:
    SAMPLE_IP = 1 << 0
    SAMPLE_TID = 1 << 1
    SAMPLE_TIME = 1 << 2
    SAMPLE_ADDR = 1 << 3
    SAMPLE_READ = 1 << 4
    SAMPLE_CALLCHAIN = 1 << 5
    SAMPLE_ID = 1 << 6
    SAMPLE_CPU = 1 << 7
    SAMPLE_PERIOD = 1 << 8
    SAMPLE_STREAM_ID = 1 << 9
    SAMPLE_RAW = 1 << 10
    SAMPLE_BRANCH_STACK = 1 << 11
    SAMPLE_IDENTIFIER = 1 << 16

# PERF_CONTEXT_*: what is no address in a call chain, as signed words from PERF_CONTEXT_MAX up to -1.
# A cookie follows the deferred one, and a later record has the user's frames.
cpdef enum:
    FIRST_CONTEXT = -4095
    CONTEXT_USER_DEFERRED = -640

# PERF_FORMAT_*
cpdef enum:
    FORMAT_TOTAL_TIME_ENABLED = 1 << 0
    FORMAT_TOTAL_TIME_RUNNING = 1 << 1
    FORMAT_ID = 1 << 2
    FORMAT_GROUP = 1 << 3
    FORMAT_LOST = 1 << 4
