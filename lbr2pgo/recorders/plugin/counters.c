#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream.h"

enum { ROOM_STEP = 2048 };

// No descriptor of the counters file stays open: the guest could close it.
static int open_counters_file(const struct cpu *c) {
    char path[sizeof stream.path + 32];
    snprintf(path, sizeof path, "%s.%u", stream.path, c->index);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

// Makes [from, from + size) of the counters file safe to touch: a full disk is found here.
static int allocate_counters(struct cpu *c, uint64_t from, uint64_t size) {
    if (c->counters_full)
        return 0;
    int file = open_counters_file(c);
    int error = file < 0 ? errno : posix_fallocate(file, (off_t)from, (off_t)size);
    if (file >= 0)
        close(file);
    if (error)
        append_note(NOTE_NO_COUNTERS, error, c->tid, NULL);
    c->counters_full = error != 0;
    return !error;
}

static int open_counters(struct cpu *c, int with_counts) {
    size_t size = with_counts ? COUNTERS_SIZE : COUNTERS_HEADER;
    c->counters_full = 0;
    if (!allocate_counters(c, 0, COUNTERS_HEADER))
        return 0;
    int file = open_counters_file(c);
    uint8_t *memory = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, (off_t)size))
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (memory == MAP_FAILED)
        return 0;
    c->counters_size = size;
    c->totals = (struct totals *)memory;
    c->counts = with_counts ? (struct block_count *)(memory + COUNTERS_HEADER) : NULL;
    c->targets = with_counts ? (struct target_count *)(memory + TARGETS_AT) : NULL;
    c->counts_room = c->totals->blocks;  // of a thread that used the same processor before
    c->targets_room = (c->totals->targets + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
    return 1;
}

void stop_counters(struct cpu *c) {
    if (c->totals)
        munmap(c->totals, c->counters_size);
    free(c->slots);
    c->slots = NULL;
    c->slots_room = 0;
    c->counts_room = c->targets_room = 0;
}

void start_counters(struct cpu *c, int with_counts) {
    if (open_counters(c, with_counts))
        return;
    c->counters_full = 1;
    c->counters_size = COUNTERS_HEADER;
    c->totals = mmap(NULL, c->counters_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (c->totals == MAP_FAILED)
        abort();
    c->counts = NULL;
    c->targets = NULL;
}

struct block_count *more_counts(struct cpu *c, uint32_t number) {
    uint64_t room = (number / ROOM_STEP + 1) * (uint64_t)ROOM_STEP;
    uint64_t unit = sizeof(struct block_count);
    uint64_t from = COUNTERS_HEADER + c->counts_room * unit;
    uint64_t size = (room - c->counts_room) * unit;
    if (!c->counts || room > BLOCKS_MAX || !allocate_counters(c, from, size)) {
        c->totals->uncounted++;
        return NULL;
    }
    c->totals->blocks = c->counts_room = room;
    return &c->counts[number];
}

static uint32_t slot_hash(uint32_t block, uint32_t target) {
    return (block * 2654435761u) ^ (target * 2246822519u) ^ block >> 15;
}

static struct target_slot *find_slot(struct target_slot *slots, uint32_t room, uint32_t block,
                                     uint32_t target) {
    uint32_t at = slot_hash(block, target);
    for (;; at++) {
        struct target_slot *slot = &slots[at & (room - 1)];
        if (!slot->block || (slot->block == block && slot->target_block == target))
            return slot;
    }
}

static int grow_slots(struct cpu *c) {
    uint32_t room = c->slots_room ? 2 * c->slots_room : 1024;
    struct target_slot *slots = calloc(room, sizeof *slots);
    if (!slots)
        return 0;
    for (uint32_t i = 0; i < c->slots_room; i++)
        if (c->slots[i].block)
            *find_slot(slots, room, c->slots[i].block, c->slots[i].target_block) = c->slots[i];
    free(c->slots);
    c->slots = slots;
    c->slots_room = room;
    return 1;
}

static struct target_count *new_target(struct cpu *c, uint32_t block, uint32_t target) {
    struct totals *t = c->totals;
    if (2 * (t->targets + 1) > c->slots_room && !grow_slots(c))
        return NULL;
    uint64_t unit = sizeof(struct target_count);
    if (t->targets == c->targets_room) {
        if (c->targets_room == TARGETS_MAX ||
            !allocate_counters(c, TARGETS_AT + c->targets_room * unit, ROOM_STEP * unit))
            return NULL;
        c->targets_room += ROOM_STEP;
    }
    struct target_slot *slot = find_slot(c->slots, c->slots_room, block, target);
    *slot = (struct target_slot){block, target, (uint32_t)t->targets};
    c->targets[t->targets] = (struct target_count){block, target, 0, 0};
    return &c->targets[t->targets++];
}

struct target_count *target_of(struct cpu *c, uint32_t block, uint32_t target) {
    struct target_slot *slot =
        c->slots_room ? find_slot(c->slots, c->slots_room, block, target) : NULL;
    if (slot && slot->block)
        return &c->targets[slot->index];
    struct target_count *count = new_target(c, block, target);
    if (!count)
        c->totals->uncounted++;
    return count;
}
