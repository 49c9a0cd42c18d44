// What the recorder was asked for, from the arguments of -plugin.

#ifndef LBR_OPTIONS_H
#define LBR_OPTIONS_H

#include <stdint.h>

#include "records.h"

// Of one structure of the front end; the sets are a power of two.
struct geometry {
    uint32_t entries, ways;
};

struct options {
    uint64_t period, seed, filter;
    uint64_t most;    // samples, at which the period doubles
    uint64_t accesses;  // to memory between samples of them, 0: there are none
    uint64_t misses;  // of the instruction cache between samples of them
    uint64_t until;   // where the start of a program ends, as it is linked
    const char *until_in;  // which program that is
    uint32_t depth;
    uint32_t returns;  // entries of the return stack, a power of two
    int call_stack, call_graph, cycles, exact, halves, exec;
    int alike;  // what the guest is told is the same in every run
    struct geometry geometries[STRUCTURES];  // no entries: none is simulated
    int wants_more;  // than last branches of all kinds with their cycles, and call chains
    int version;  // of QEMU's interface
};

extern struct options options;

// Sets these, the stream's directory and the emulator's own; whether they make sense together.
int read_options(int argc, char **argv);

#endif
