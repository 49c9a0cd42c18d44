// The state of one virtual processor, that is of one thread of the guest: where it was last, its
// branch ring, its predictor and its counters. Only its own thread touches it: nothing is locked.

#ifndef LBR_CPU_H
#define LBR_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "front_end.h"
#include "predictor.h"
#include "records.h"

enum { RING_MAX = 64, SIGNALS_MAX = 64 };

// Where a signal found the thread: what `last` did is known only when the handler has returned.
struct interruption {
    const struct block *last;
    uint64_t handler;
    uint32_t handler_block;
};

struct target_slot {
    uint32_t block, target_block;  // 0, 0 is free: blocks are numbered from 1
    uint32_t index;                // into the counters
};

struct cpu {
    struct totals *totals;
    const struct block *last;
    int64_t until_sample;
    int64_t until_access;  // that is sampled
    uint64_t period;
    uint64_t stalled;     // cycles lost to mispredictions, in quarters
    uint64_t clock_last;  // at the newest entry
    uint64_t random;
    uint64_t newest, oldest;  // the ring holds what was put in between, but no more than its depth
    uint32_t returning;  // rt_sigreturn has been called
    uint32_t interruptions;
    int32_t tid;
    unsigned index;
    struct block_count *counts;
    struct target_count *targets;
    uint64_t counts_room, targets_room;  // allocated in the file
    struct target_slot *slots;           // hash table over `targets`
    uint32_t slots_room;
    int counters_full;  // the disk is
    size_t counters_size;
    uint64_t call[8];  // arguments of the system call under way
    struct interruption interrupted[SIGNALS_MAX];
    struct calls *calls;  // NULL without call chains
    struct front_end *front_end;  // NULL where none is simulated
    struct entry ring[RING_MAX];
    struct predictor predictor;
};

#endif
