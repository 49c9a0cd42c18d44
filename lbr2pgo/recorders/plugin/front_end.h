// The simulated front end: which cache lines and pages of code a thread fetches, and what of them is
// in an instruction cache, a second-level cache (that holds code alone), two levels of instruction
// TLBs and a branch target buffer; and directions and indirect targets, as a larger predictor than
// predictor.h's foresees them, which moved code can't disturb. Returns are predictor.h's.
//
// In order, without prefetches or wrong paths: a line is fetched when its first instruction runs.
// A line is 64 bytes and a page 4 KB.

#ifndef LBR_FRONT_END_H
#define LBR_FRONT_END_H

#include "blocks.h"
#include "cache.h"
#include "records.h"
#include "tagged.h"

struct front_end {
    struct cache caches[STRUCTURES];
    uint64_t misses;  // since the last sample of one
    uint64_t history;  // of conditional branches an outcome, of indirect ones some of the target
    struct tagged directions, targets;
};

// As large as is asked for; NULL without memory.
struct front_end *make_front_end(void);

void free_front_end(struct front_end *front_end);

// A thread fetches a whole block.
void fetch_block(struct front_end *front_end, const struct block *b, struct totals *totals,
                 int32_t tid);

// A branch was taken.
static inline void look_up_branch(const struct front_end *front_end, uint64_t from,
                                  struct totals *totals) {
    // Its lowest bits choose the set, and instructions may be aligned: others enter them, too.
    totals->missed[BTB] += (uint64_t)misses(&front_end->caches[BTB], from ^ from >> 10);
}

// A conditional branch was taken, or not.
static inline void foresee_direction(struct front_end *front_end, uint64_t from, uint32_t taken,
                                     struct totals *totals) {
    totals->wrong_directions +=
        (uint64_t)mispredicts(&front_end->directions, from, front_end->history, taken);
    front_end->history = front_end->history << 1 | taken;
}

// An indirect jump or call went to a target.
static inline void foresee_target(struct front_end *front_end, uint64_t from, uint64_t to,
                                  struct totals *totals) {
    uint32_t target = (uint32_t)(to ^ to >> 32);
    totals->wrong_targets +=
        (uint64_t)mispredicts(&front_end->targets, from, front_end->history, target);
    front_end->history = front_end->history << 3 ^ (target >> 2 & 63);
}

#endif
