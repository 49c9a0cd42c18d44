#include "maps.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream.h"

static struct {
    pthread_mutex_t lock;
    struct region *regions;
    size_t count, room;
    uint32_t serials;
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { PAGE = 4096 };

void lock_maps(void) { pthread_mutex_lock(&maps.lock); }

void unlock_maps(void) { pthread_mutex_unlock(&maps.lock); }

uint32_t recorded_maps(void) { return maps.serials; }

uint64_t page_down(uint64_t address) { return address & ~(uint64_t)(PAGE - 1); }

uint64_t page_up(uint64_t address) { return page_down(address + PAGE - 1); }

static void add_region(struct region region) {
    if (maps.count == maps.room) {
        size_t room = maps.room ? 2 * maps.room : 64;
        struct region *grown = realloc(maps.regions, room * sizeof *grown);
        if (!grown) {
            append_note(NOTE_NO_MEMORY, ENOMEM, 0, region.path);
            return;
        }
        maps.regions = grown;
        maps.room = room;
    }
    maps.regions[maps.count++] = region;
}

void remove_range(uint64_t start, uint64_t end) {
    size_t count = maps.count;
    for (size_t i = 0; i < count; i++) {
        struct region r = maps.regions[i];
        if (r.end <= start || r.start >= end)
            continue;
        struct region tail = r;
        tail.offset += end - r.start;
        tail.start = end;
        maps.regions[i].end = r.start < start ? start : r.start;
        if (tail.start < tail.end)
            add_region(tail);
    }
    size_t kept = 0;
    for (size_t i = 0; i < maps.count; i++)
        if (maps.regions[i].start < maps.regions[i].end)
            maps.regions[kept++] = maps.regions[i];
    maps.count = kept;
}

static void make_executable(struct region *r, int32_t tid) {
    r->serial = ++maps.serials;
    struct map_record body = {r->start, r->end - r->start, r->offset, r->serial, 0};
    append_record(RECORD_MAP, tid, &body, sizeof body, r->path);
}

void map_range(struct region region, int executable, int32_t tid) {
    remove_range(region.start, region.end);
    if (executable)
        make_executable(&region, tid);
    if (executable || strcmp(region.path, "//anon"))
        add_region(region);
}

void protect_range(uint64_t start, uint64_t end, int executable, int32_t tid) {
    if (!executable)
        return;
    size_t count = maps.count;
    uint64_t covered = start;
    for (uint64_t at = start; at < end; at = covered) {
        struct region *hit = NULL, *next = NULL;
        for (size_t i = 0; i < count; i++) {
            struct region *r = &maps.regions[i];
            if (r->start <= at && at < r->end)
                hit = r;
            else if (r->start > at && r->start < end && (!next || r->start < next->start))
                next = r;
        }
        covered = hit ? hit->end : next ? next->start : end;
        covered = covered < end ? covered : end;
        struct region piece = {at, covered, 0, "//anon", 0};
        if (hit && hit->serial)
            continue;
        if (hit) {
            piece.path = hit->path;
            piece.offset = hit->offset + (at - hit->start);
        }
        map_range(piece, 1, tid);
        count = maps.count;
    }
}

void move_range(uint64_t from, uint64_t size, uint64_t to, uint64_t new_size, int32_t tid) {
    struct region moved = {0, 0, 0, NULL, 0};
    for (size_t i = 0; i < maps.count; i++)
        if (maps.regions[i].start <= from && from < maps.regions[i].end)
            moved = maps.regions[i];
    if (size)
        remove_range(from, from + size);
    remove_range(to, to + new_size);
    if (!moved.path)
        return;
    struct region region = {to, to + new_size, moved.offset + (from - moved.start), moved.path, 0};
    map_range(region, moved.serial != 0, tid);
}

static uint32_t find_serial(uint64_t address) {
    for (size_t i = 0; i < maps.count; i++)
        if (maps.regions[i].start <= address && address < maps.regions[i].end)
            return maps.regions[i].serial;
    return 0;
}

uint32_t serial_at(uint64_t address) {
    lock_maps();
    uint32_t serial = find_serial(address);
    unlock_maps();
    return serial;
}

int is_of_file(uint64_t address) {
    int found = 0;
    lock_maps();
    for (size_t i = 0; i < maps.count && !found; i++) {
        const struct region *r = &maps.regions[i];
        found = r->start <= address && address < r->end && strcmp(r->path, "//anon");
    }
    unlock_maps();
    return found;
}

char *path_of_descriptor(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return "//unknown";
    path[size] = 0;
    char *copy = strdup(path);
    return copy ? copy : "//unknown";
}
