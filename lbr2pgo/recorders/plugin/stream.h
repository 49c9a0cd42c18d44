// The stream of this process. Records are appended whole, each by one write, so that threads need no
// lock and a killed process loses nothing.

#ifndef LBR_STREAM_H
#define LBR_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "records.h"

struct stream {
    const char *directory;
    char path[4096];
    int file;   // the guest shares its descriptors with us: see keep_stream_open()
    int error;  // errno of the first write that failed; nothing is written after it
};

extern struct stream stream;

// CLOCK_MONOTONIC, in nanoseconds.
uint64_t now(void);

// Opens a stream of this process under a name that no other process has had.
int open_stream(void);

// The guest is about to close a descriptor, or to put another file in its place.
void keep_stream_open(int64_t closing);

// The guest has closed a whole range of descriptors.
void reopen_stream(uint64_t first, uint64_t last);

// Appends a whole record; whether it could be written.
int append(const void *record, size_t size);

// Appends a record: a body of whole words, then text.
int append_record(enum record_kind kind, int32_t tid, const void *body, size_t body_size,
                  const char *text);

// Says that the recording may end. It takes no descriptor: the guest numbers its own.
void tell_end(void);

void append_note(enum note note, int error, int32_t tid, const char *text);

#endif
