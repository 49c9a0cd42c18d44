// The guest's file mappings and executable memory, followed through its own system calls; what the
// loader inside QEMU mapped before the first instruction is worked out from the ELF headers.

#ifndef LBR_MAPS_H
#define LBR_MAPS_H

#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "stream.h"

struct region {
    uint64_t start, end, offset;
    char *path;       // shared by the pieces of a split region, never freed
    uint32_t serial;  // of the map record; 0 until it is executable
};

static struct {
    pthread_mutex_t lock;
    struct region *regions;
    size_t count, room;
    uint32_t serials;
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { PAGE = 4096 };

static inline uint64_t page_down(uint64_t address) { return address & ~(uint64_t)(PAGE - 1); }
static inline uint64_t page_up(uint64_t address) { return page_down(address + PAGE - 1); }

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

// Cuts [start, end) out of what is known; a region may fall into two pieces.
static void remove_range(uint64_t start, uint64_t end) {
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

static void map_range(struct region region, int executable, int32_t tid) {
    remove_range(region.start, region.end);
    if (executable)
        make_executable(&region, tid);
    if (executable || strcmp(region.path, "//anon"))
        add_region(region);
}

// mprotect: known pieces become executable; memory of no file is known only while it is code.
static void protect_range(uint64_t start, uint64_t end, int executable, int32_t tid) {
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

static void move_range(uint64_t from, uint64_t size, uint64_t to, uint64_t new_size, int32_t tid) {
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

static uint32_t serial_at(uint64_t address) {
    for (size_t i = 0; i < maps.count; i++)
        if (maps.regions[i].start <= address && address < maps.regions[i].end)
            return maps.regions[i].serial;
    return 0;
}

// The path behind a descriptor, as the host sees it; never freed, a program maps few files.
static char *path_of_descriptor(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return "//unknown";
    path[size] = 0;
    char *copy = strdup(path);
    return copy ? copy : "//unknown";
}

struct elf_head {
    Elf64_Ehdr header;
    Elf64_Phdr segments[64];
    int segment_count;
    char interpreter[PATH_MAX];
};

// Reads what matters of an ELF file; 0 if it is none that this can read.
static int read_elf_head(const char *path, struct elf_head *elf) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const Elf64_Ehdr *h = &elf->header;
    int good = pread(file, &elf->header, sizeof elf->header, 0) == sizeof elf->header &&
               !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
               h->e_phentsize == sizeof(Elf64_Phdr);
    elf->segment_count = good && h->e_phnum < 64 ? h->e_phnum : 0;
    ssize_t size = elf->segment_count * (ssize_t)sizeof(Elf64_Phdr);
    good = good && pread(file, elf->segments, (size_t)size, (off_t)h->e_phoff) == size;
    elf->interpreter[0] = 0;
    for (int i = 0; good && i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type == PT_INTERP && p->p_filesz < sizeof elf->interpreter) {
            ssize_t got = pread(file, elf->interpreter, p->p_filesz, (off_t)p->p_offset);
            elf->interpreter[got > 0 ? got : 0] = 0;
        }
    }
    close(file);
    return good;
}

static void map_segments(const struct elf_head *elf, uint64_t bias, char *path, int32_t tid) {
    for (int i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type != PT_LOAD || p->p_filesz == 0)
            continue;
        uint64_t address = bias + p->p_vaddr;
        struct region region = {page_down(address), page_up(address + p->p_filesz),
                                page_down(p->p_offset), path, 0};
        map_range(region, (p->p_flags & PF_X) != 0, tid);
    }
}

static uint64_t first_code(const struct elf_head *elf) {
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_vaddr < first)
            first = p->p_vaddr;
    }
    return first;
}

#endif
