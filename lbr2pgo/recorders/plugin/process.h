// Processes and threads: how they begin, fork and end.

#ifndef LBR_PROCESS_H
#define LBR_PROCESS_H

#include "cpu.h"

enum { CPUS_MAX = 1 << 16 };

extern struct cpu *cpus[CPUS_MAX];

// The first of this process's records: of itself, and of what was mapped before it ran.
void start_process(void);

// Lets children of the guest begin streams of their own; 0, or why that can't be.
int follow_forks(void);

// What a thread is called from now on.
void append_name(int32_t tid, const char *name, int by_exec);

struct cpu *start_cpu(unsigned index);
void stop_cpu(struct cpu *c);

// The state of a processor, made when it is first seen.
static inline struct cpu *cpu_of(unsigned vcpu) {
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    return __builtin_expect(!c, 0) ? start_cpu(vcpu) : c;
}

#endif
