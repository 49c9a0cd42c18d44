// What one process writes: a stream of records in <directory>/<pid>-<serial>.lbr, and for each of
// its virtual processors a file of counters, <stream>.<processor>, shared memory that survives the
// process however it dies. All numbers are little-endian; read by record/plugin_stream.py.
//
// Every record is a header and a body padded to eight bytes. Records are appended whole, each by
// one write, so that threads need no lock and a killed process loses nothing.

#ifndef LBR_STREAM_H
#define LBR_STREAM_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
};

enum note {
    NOTE_EXEC_NOT_FOLLOWED = 1,
    NOTE_NO_COUNTERS = 2,
    NOTE_NO_MEMORY = 3,
    NOTE_UNKNOWN_LOAD_ADDRESS = 4,
    NOTE_NO_STACK_POINTER = 5,
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

enum { STREAM_VERSION = 2, COUNTERS_HEADER = 4096, BLOCKS_MAX = 1 << 22, TARGETS_MAX = 1 << 23 };

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

static struct {
    const char *directory;
    char path[4096];
    int file;   // the guest shares its descriptors with us: see keep_stream_open()
    int error;  // errno of the first write that failed; nothing is written after it
} stream = {.file = -1};

static inline uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Moves a descriptor out of the way: guests expect the lowest free numbers.
static inline int move_up(int file) {
    enum { HIGH = 1000 };
    int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, HIGH);
    if (moved < 0)
        return file;
    close(file);
    return moved;
}

// Opens a stream of this process under a name that no other process has had.
static inline int open_stream(void) {
    stream.error = 0;
    for (unsigned serial = 0; serial < 1000000; serial++) {
        snprintf(stream.path, sizeof stream.path, "%s/%d-%u.lbr", stream.directory, (int)getpid(),
                 serial);
        stream.file = open(stream.path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (stream.file >= 0 || errno != EEXIST)
            break;
    }
    if (stream.file < 0)
        stream.error = errno;
    stream.file = move_up(stream.file);
    return stream.file >= 0;
}

// The guest is about to close a descriptor, or to put another file in its place.
static inline void keep_stream_open(int64_t closing) {
    if (closing == stream.file)
        stream.file = fcntl(stream.file, F_DUPFD_CLOEXEC, stream.file + 1);
}

// The guest has closed a whole range of descriptors.
static inline void reopen_stream(uint64_t first, uint64_t last) {
    if (stream.file < 0 || (uint64_t)stream.file < first || (uint64_t)stream.file > last)
        return;
    stream.file = move_up(open(stream.path, O_WRONLY | O_APPEND | O_CLOEXEC));
    if (stream.file < 0)
        stream.error = errno;
}

static inline int append(const void *record, size_t size) {
    if (stream.error)
        return 0;
    ssize_t written = write(stream.file, record, size);
    if (written == (ssize_t)size)
        return 1;
    stream.error = written < 0 ? errno : ENOSPC;
    return 0;
}

// Appends a record: a body of whole words, then text.
static inline int append_record(enum record_kind kind, int32_t tid, const void *body,
                                size_t body_size, const char *text) {
    size_t text_size = text ? strnlen(text, 8192) : 0;
    size_t size = (sizeof(struct record_header) + body_size + text_size + 7) & ~(size_t)7;
    uint8_t record[sizeof(struct record_header) + 256 + 8200] = {0};
    struct record_header header = {kind, (uint32_t)size, now(), tid, (uint32_t)text_size};
    memcpy(record, &header, sizeof header);
    if (body_size)
        memcpy(record + sizeof header, body, body_size);
    if (text_size)
        memcpy(record + sizeof header + body_size, text, text_size);
    return append(record, size);
}

static inline void append_note(enum note note, int error, int32_t tid, const char *text) {
    uint32_t body[2] = {note, (uint32_t)error};
    append_record(RECORD_NOTE, tid, body, sizeof body, text);
}

#endif
