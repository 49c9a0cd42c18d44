// The simulated branch predictor: an honest, simple one, not any real processor's.
//
// Conditional branches: gshare, 4,096 two-bit counters indexed by the branch's address xor the last
// 12 outcomes. Indirect jumps and calls: 1,024 remembered targets, indexed by the branch's address
// xor a hash of the last four targets or so. Returns: a stack of 16 return addresses. Direct jumps
// and calls are always right. A misprediction costs 16 cycles on top of a quarter of a cycle an
// instruction.

#ifndef LBR_PREDICTOR_H
#define LBR_PREDICTOR_H

#include <stdint.h>

enum { CONDITION_COUNTERS = 4096, REMEMBERED_TARGETS = 1024, RETURN_STACK = 16 };
enum { INSTRUCTIONS_PER_CYCLE = 4, MISPREDICTION_CYCLES = 16 };

struct predictor {
    uint32_t outcomes;  // newest in bit 0
    uint32_t path;      // hash of the last targets of indirect branches
    uint32_t depth;     // of `returns`, counted without bound
    uint8_t counters[CONDITION_COUNTERS];
    uint64_t targets[REMEMBERED_TARGETS];
    uint64_t returns[RETURN_STACK];
};

// Each of these learns the outcome and says whether it had been predicted wrongly.
int mispredicts_condition(struct predictor *p, uint64_t from, int taken);
int mispredicts_target(struct predictor *p, uint64_t from, uint64_t to);
int mispredicts_return(struct predictor *p, uint64_t to);

// A call was taken that will return there.
void expect_return(struct predictor *p, uint64_t address);

#endif
