// What the recorder was asked for, from the arguments of -plugin.

#ifndef LBR_OPTIONS_H
#define LBR_OPTIONS_H

#include <stdint.h>

struct options {
    uint64_t period, seed, filter;
    uint32_t depth;
    int call_stack, call_graph, cycles, exact, halves, exec;
    int version;  // of QEMU's interface
};

extern struct options options;

// Sets these, the stream's directory and the emulator's own; whether they make sense together.
int read_options(int argc, char **argv);

#endif
