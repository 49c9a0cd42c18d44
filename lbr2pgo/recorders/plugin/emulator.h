// The emulator that this plugin is in, as far as the plugin has to start it again.

#ifndef LBR_EMULATOR_H
#define LBR_EMULATOR_H

#include <limits.h>
#include <stdint.h>

#include "architecture.h"

struct emulator {
    const struct architecture *architecture;  // that it runs
    const char *sysroot;                      // its -L, or NULL
    char *option;                             // its -plugin
    char self[PATH_MAX];
    const char *program;  // what it runs now
    uint64_t entry;       // of that, not of its dynamic loader
    uint64_t started;     // where its start ends, if it does
};

extern struct emulator emulator;

// Keeps its path and the -plugin option with these arguments, for programs that the guest executes.
void remember_emulator(int argc, char **argv);

#endif
