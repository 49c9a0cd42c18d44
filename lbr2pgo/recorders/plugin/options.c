#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "stream.h"

struct options options = {.period = 10007, .depth = 32, .filter = UINT64_MAX};

static uint64_t number_of(const char *text) { return strtoull(text, NULL, 0); }

static void set_option(const char *name, size_t size, const char *value) {
    struct {
        const char *name;
        int *flag;
    } flags[] = {
        {"callstack", &options.call_stack}, {"callgraph", &options.call_graph},
        {"cycles", &options.cycles},        {"exact", &options.exact},
        {"halves", &options.halves},        {"exec", &options.exec},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strlen(flags[i].name) == size && !memcmp(name, flags[i].name, size))
            *flags[i].flag = value[0] == '1';
    struct {
        const char *name;
        uint64_t *number;
    } values[] = {
        {"period", &options.period}, {"seed", &options.seed}, {"filter", &options.filter}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strlen(values[i].name) == size && !memcmp(name, values[i].name, size))
            *values[i].number = number_of(value);
    if (!strncmp(name, "dir=", 4))
        stream.directory = value;
    else if (!strncmp(name, "sysroot=", 8))
        emulator.sysroot = value;
    else if (!strncmp(name, "depth=", 6))
        options.depth = (uint32_t)number_of(value);
    else if (!strncmp(name, "machine=", 8))
        emulator.architecture = architecture_of(number_of(value));
}

int read_options(int argc, char **argv) {
    enum { DEPTH_MAX = 64 };
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals)
            set_option(argv[i], (size_t)(equals - argv[i]), equals + 1);
    }
    return stream.directory && emulator.architecture && options.period && options.depth &&
           options.depth <= DEPTH_MAX && !(options.depth & (options.depth - 1));
}
