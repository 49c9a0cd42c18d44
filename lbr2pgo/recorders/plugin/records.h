// What one process writes: a stream of records in <directory>/<pid>-<serial>.lbr, and for each of
// its virtual processors a file of counters, <stream>.<processor>, shared memory that survives the
// process however it dies. All numbers are little-endian; read by recorders/plugin_stream.py.

#ifndef LBR_RECORDS_H
#define LBR_RECORDS_H

#include <stdint.h>

enum record_kind {
    RECORD_START = 1,   // struct start_record, then the name of the parent's stream if forked
    RECORD_MAP = 2,     // struct map_record, then the path
    RECORD_COMM = 3,    // u32 by_exec, u32 0, then the name
    RECORD_THREAD = 4,  // a thread begins; no body
    RECORD_EXIT = 5,    // a thread ends; no body
    RECORD_SAMPLE = 6,  // u64 number of frames, the ip, return addresses (the innermost first),
                        // then struct entry for each branch, the newest first
    RECORD_BLOCK = 7,   // struct block_record
    RECORD_NOTE = 8,    // u32 enum note, u32 errno, then a path or nothing
    RECORD_PERIOD = 10,  // u64 branches between the samples that this thread takes from now on
    RECORD_STARTED = 11,  // the start-up ends here; no body
    RECORD_ACCESS = 12,  // u64 instruction, u64 address of its data, u64 whether it is a store, then
                         // return addresses (the innermost first), if the data is a file's
    RECORD_MISS = 9,    // u64 address in a line of code that the instruction cache did not hold
};

enum note {
    NOTE_EXEC_NOT_FOLLOWED = 1,
    NOTE_NO_COUNTERS = 2,
    NOTE_NO_MEMORY = 3,
    NOTE_UNKNOWN_LOAD_ADDRESS = 4,
    NOTE_NO_STACK_POINTER = 5,
    // Once a process, where the guest was told what differs from run to run.
    NOTE_TOLD_TIME = 6,
    NOTE_TOLD_PROCESS = 7,
    NOTE_TOLD_BY_NETWORK = 8,
    NOTE_THREADS_WAIT = 9,
};

struct record_header {
    uint32_t kind;
    uint32_t size;  // with this header and the padding
    uint64_t time;  // CLOCK_MONOTONIC, nanoseconds
    int32_t tid;
    uint32_t text;  // bytes of text at the end of the body, without padding
};

enum { STARTED_AFRESH, STARTED_BY_FORK };

struct start_record {
    uint32_t version;
    uint32_t machine;  // EM_*
    int32_t pid, parent_pid;
    uint32_t how;
    uint32_t blocks;  // forked: blocks below this number are the parent's
    uint32_t maps;    // forked: as many maps are the parent's
    uint32_t reserved;
};

struct map_record {
    uint64_t start, length, offset;
    uint32_t serial;  // from 1; 0 stands for memory of unknown origin
    uint32_t reserved;
};

struct block_record {
    uint64_t start, from, end, target;  // `from`: the last instruction; `end`: behind it
    uint32_t number, map;
    uint32_t kind;  // enum kind
    uint32_t reserved;
};

// As struct perf_branch_entry (Linux: include/uapi/linux/perf_event.h).
struct entry {
    uint64_t from, to, flags;
};

enum { MISPREDICTED = 1 << 0, PREDICTED = 1 << 1, PRIVILEGE_USER = 1 << 30 };
enum { CYCLES_AT = 4, TYPE_AT = 20 };

enum { STREAM_VERSION = 2, COUNTERS_HEADER = 4096, BLOCKS_MAX = 1 << 22, TARGETS_MAX = 1 << 23 };

// Of the simulated front end: caches, TLBs and the branch target buffer.
enum structure { L1I, L2, ITLB, STLB, BTB, STRUCTURES };

// The head of a counters file; block counts start at COUNTERS_HEADER, targets at TARGETS_AT.
struct totals {
    uint64_t instructions;
    uint64_t taken;
    uint64_t not_taken;
    uint64_t mispredicted;
    uint64_t samples;
    uint64_t blocks;         // counts that may be read
    uint64_t targets;        // targets that may be read
    uint64_t uncounted;      // executions that found no room among the counts
    uint64_t lost_samples;   // that could not be written
    uint64_t write_error;    // errno of the first record that could not be written
    uint64_t unexplained;    // jumps that neither a branch nor a known signal handler explains
    uint64_t wrong_returns;  // of the mispredicted branches
    // Of the front end: what its own predictor got wrong, and misses of each structure.
    uint64_t wrong_directions, wrong_targets;
    uint64_t missed[STRUCTURES];
};

struct block_count {
    uint64_t not_taken, taken, not_taken_mispredicted, taken_mispredicted;
};

struct target_count {
    uint32_t block, target_block;
    uint64_t count, mispredicted;
};

enum {
    TARGETS_AT = COUNTERS_HEADER + BLOCKS_MAX * sizeof(struct block_count),
    COUNTERS_SIZE = TARGETS_AT + TARGETS_MAX * sizeof(struct target_count),
};

#endif
