// What system calls tell the guest and differs from run to run: it is noted, or made the same.

#ifndef LBR_SAME_ANSWERS_H
#define LBR_SAME_ANSWERS_H

#include <stdint.h>

struct cpu;

// Notes, once a process, that the guest asks for what no run has alike.
void note_what_differs(int64_t number, int32_t tid);

// Puts random bytes that follow from the seed, and a time that follows from the instructions, into
// the guest's memory, in place of what a system call has put there.
void answer_alike(const struct cpu *c, int64_t number, int64_t result);

#endif
