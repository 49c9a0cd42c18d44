// The counters of a processor, in a file of shared memory.

#ifndef LBR_COUNTERS_H
#define LBR_COUNTERS_H

#include "cpu.h"

// Gives a processor its counters; without a place for them they are counted for nothing.
void start_counters(struct cpu *c, int with_counts);

void stop_counters(struct cpu *c);

// Finds room for the counts of a block that has none yet.
struct block_count *more_counts(struct cpu *c, uint32_t number);

// The counts of a block, NULL if there is no room.
static inline struct block_count *count_of(struct cpu *c, const struct block *b) {
    return b->number < c->counts_room ? &c->counts[b->number] : more_counts(c, b->number);
}

// The counts of a block's branch to a target, NULL if there is no room.
struct target_count *target_of(struct cpu *c, uint32_t block, uint32_t target);

#endif
