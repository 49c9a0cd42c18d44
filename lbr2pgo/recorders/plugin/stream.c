#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct stream stream = {.file = -1};

uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Moves a descriptor out of the way: guests expect the lowest free numbers.
static int move_up(int file) {
    enum { HIGH = 1000 };
    int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, HIGH);
    if (moved < 0)
        return file;
    close(file);
    return moved;
}

int open_stream(void) {
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

void keep_stream_open(int64_t closing) {
    if (closing == stream.file)
        stream.file = fcntl(stream.file, F_DUPFD_CLOEXEC, stream.file + 1);
}

void reopen_stream(uint64_t first, uint64_t last) {
    if (stream.file < 0 || (uint64_t)stream.file < first || (uint64_t)stream.file > last)
        return;
    stream.file = move_up(open(stream.path, O_WRONLY | O_APPEND | O_CLOEXEC));
    if (stream.file < 0)
        stream.error = errno;
}

int append(const void *record, size_t size) {
    if (stream.error)
        return 0;
    ssize_t written = write(stream.file, record, size);
    if (written == (ssize_t)size)
        return 1;
    stream.error = written < 0 ? errno : ENOSPC;
    return 0;
}

int append_record(enum record_kind kind, int32_t tid, const void *body, size_t body_size,
                  const char *text) {
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

void tell_end(void) {
    char path[sizeof stream.path];
    snprintf(path, sizeof path, "%s/started", stream.directory);
    mkdir(path, 0700);
}

void append_note(enum note note, int error, int32_t tid, const char *text) {
    uint32_t body[2] = {note, (uint32_t)error};
    append_record(RECORD_NOTE, tid, body, sizeof body, text);
}
