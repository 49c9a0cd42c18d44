// The simulated branch predictor: an honest, simple one, not any real processor's.
//
// Conditional branches: gshare, 4,096 two-bit counters indexed by the branch's address xor the last
// 12 outcomes. Indirect jumps and calls: 1,024 remembered targets, indexed by the branch's address
// xor a hash of the last four targets or so. Returns: a stack of 16 return
// addresses, or of as many as is asked for. Direct jumps and calls are always right. A misprediction costs
// 16 cycles on top of a quarter of a cycle an instruction.

#ifndef LBR_PREDICTOR_H
#define LBR_PREDICTOR_H

#include <stdint.h>

enum { CONDITION_COUNTERS = 4096, REMEMBERED_TARGETS = 1024, RETURN_STACK_MAX = 64 };
enum { INSTRUCTIONS_PER_CYCLE = 4, MISPREDICTION_CYCLES = 16 };

struct predictor {
    uint32_t outcomes;  // newest in bit 0
    uint32_t path;      // hash of the last targets of indirect branches
    uint32_t depth;     // of `returns`, counted without bound
    uint32_t last;      // of `returns` that are used, whose number is a power of two
    uint8_t counters[CONDITION_COUNTERS];
    uint64_t targets[REMEMBERED_TARGETS];
    uint64_t returns[RETURN_STACK_MAX];
};

static inline uint32_t spread(uint64_t address) {
    return (uint32_t)(address ^ address >> 12);
}

// What a target adds to the path.
static inline uint32_t step_of(uint64_t target) { return spread(target) ^ (uint32_t)(target >> 4); }

// Each of these learns the outcome and says whether it had been predicted wrongly. They are inlined:
// one of them runs for nearly every block. `from` is the branch's address, spread.
static inline uint32_t mispredicts_condition(struct predictor *p, uint32_t from,
                                             uint32_t taken) {
    uint8_t *counter = &p->counters[(from ^ p->outcomes) % CONDITION_COUNTERS];
    uint32_t wrong = (*counter >= 2) != taken;
    if (taken)
        *counter += *counter < 3;
    else
        *counter -= *counter > 0;
    p->outcomes = p->outcomes << 1 | taken;
    return wrong;
}

static inline uint32_t mispredicts_target(struct predictor *p, uint32_t from, uint64_t to,
                                          uint32_t step) {
    uint64_t *remembered = &p->targets[(from ^ p->path) % REMEMBERED_TARGETS];
    uint32_t wrong = *remembered != to;
    *remembered = to;
    p->path = p->path << 3 ^ step;
    return wrong;
}

static inline uint32_t mispredicts_return(struct predictor *p, uint64_t to) {
    return p->returns[--p->depth & p->last] != to;
}

// A call was taken that will return there.
static inline void expect_return(struct predictor *p, uint64_t address) {
    p->returns[p->depth++ & p->last] = address;
}

#endif
