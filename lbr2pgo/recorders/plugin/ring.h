// The branch ring: what goes into it, and when a sample is taken of it.

#ifndef LBR_RING_H
#define LBR_RING_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"

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

// A branch was taken. `ahead`: instructions already counted that follow the branch.
void record_branch(struct cpu *c, const struct block *b, uint64_t to, int wrong, uint32_t ahead);

#endif
