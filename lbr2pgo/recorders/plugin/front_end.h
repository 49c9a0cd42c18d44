// The simulated front end: which cache lines and pages of code a thread fetches, and what of them is
// in an instruction cache, a second-level cache (that holds code alone), two levels of instruction
// TLBs and a branch target buffer. Directions, indirect targets and returns are predictor.h's.
//
// In order, without prefetches or wrong paths: a line is fetched when its first instruction runs.
// A line is 64 bytes and a page 4 KB.

#ifndef LBR_FRONT_END_H
#define LBR_FRONT_END_H

#include "blocks.h"
#include "cache.h"
#include "records.h"

struct front_end {
    struct cache caches[STRUCTURES];
};

// As large as is asked for; NULL without memory.
struct front_end *make_front_end(void);

void free_front_end(struct front_end *front_end);

// A thread fetches a whole block.
void fetch_block(const struct front_end *front_end, const struct block *b, struct totals *totals);

// A branch was taken.
static inline void look_up_branch(const struct front_end *front_end, uint64_t from,
                                  struct totals *totals) {
    // Its lowest bits choose the set, and instructions may be aligned: others enter them, too.
    totals->missed[BTB] += (uint64_t)misses(&front_end->caches[BTB], from ^ from >> 10);
}

#endif
