// The branch ring: what goes into it, and when a sample is taken of it.

#ifndef LBR_RING_H
#define LBR_RING_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "options.h"

// A period, an eighth of it more or less.
int64_t jittered(struct cpu *c, uint64_t period);

// The next sample comes a period from here, by random numbers that begin anew.
void begin_period(struct cpu *c);

// The same, and no branch is in the ring.
void reset_ring(struct cpu *c);

// A transfer whose other end is the kernel's, and 0. As in BRBE's records an entry without a target
// has no privilege level, and one without a source no prediction.
void put_half(struct cpu *c, uint64_t from, uint64_t to, uint32_t type);

// Appends a sample, whole as `append` wants it, or counts it as lost.
void append_sample(struct cpu *c, const void *sample, size_t size);

// Takes what is in the ring, as the thread goes on at an address.
void take_sample(struct cpu *c, uint64_t ip);

static inline void put_entry(struct cpu *c, uint64_t from, uint64_t to, uint64_t flags) {
    c->ring[++c->newest % RING_MAX] = (struct entry){from, to, flags};
}

static inline uint64_t flags_of(const struct block *b, uint32_t wrong) {
    return b->flags - wrong * (PREDICTED - MISPREDICTED);
}

// A misprediction costs time.
static inline void stall(struct cpu *c, uint32_t wrong) {
    c->stalled += wrong * MISPREDICTION_CYCLES * INSTRUCTIONS_PER_CYCLE;
}

static inline uint64_t cycles_since_last(struct cpu *c, uint64_t clock) {
    enum { SATURATED = 0xffff };
    uint64_t cycles = (clock - c->clock_last + INSTRUCTIONS_PER_CYCLE - 1) / INSTRUCTIONS_PER_CYCLE;
    c->clock_last = clock;
    cycles = cycles < SATURATED ? cycles : SATURATED;
    return options.cycles ? cycles << CYCLES_AT : 0;
}

// A branch enters the ring with its cycles. `ahead`: instructions already counted that follow it.
static inline void put_branch(struct cpu *c, const struct block *b, uint64_t to, uint32_t wrong,
                              uint32_t ahead) {
    uint64_t clock = c->totals->instructions - ahead + c->stalled;
    put_entry(c, b->from, to, flags_of(b, wrong) | cycles_since_last(c, clock));
}

// The same where more is wanted: if it is of a kind to keep, or as a call that is open.
void put_as_asked(struct cpu *c, const struct block *b, uint64_t to, uint32_t wrong,
                  uint32_t ahead);

// A branch was taken. `more`, here and in flow.c, is constant: whether more is wanted than last
// branches of all kinds with their cycles, and call chains.
static inline __attribute__((always_inline)) void record_branch(struct cpu *c,
                                                                const struct block *b, uint64_t to,
                                                                uint32_t wrong, uint32_t ahead,
                                                                int more) {
    c->totals->taken++;
    c->totals->mispredicted += wrong;
    stall(c, wrong);
    if (more)
        put_as_asked(c, b, to, wrong, ahead);
    else
        put_branch(c, b, to, wrong, ahead);
    if (--c->until_sample <= 0)
        take_sample(c, to);
}

#endif
