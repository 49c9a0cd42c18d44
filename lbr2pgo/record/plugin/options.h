// What the recorder was asked for, from the arguments of -plugin.

#ifndef LBR_OPTIONS_H
#define LBR_OPTIONS_H

#include <dlfcn.h>

#include "exec.h"
#include "predictor.h"

static struct {
    uint64_t period, seed, filter;
    uint32_t depth;
    int call_stack, call_graph, cycles, exact, halves, exec;
    int version;  // of QEMU's interface
} options = {.period = 10007, .depth = 32, .filter = UINT64_MAX};

static struct emulator emulator;

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
        emulator.machine = (uint16_t)number_of(value);
}

// Whether the arguments make sense together.
static int read_options(int argc, char **argv) {
    enum { DEPTH_MAX = 64 };
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals)
            set_option(argv[i], (size_t)(equals - argv[i]), equals + 1);
    }
    return stream.directory && options.period && options.depth && options.depth <= DEPTH_MAX &&
           !(options.depth & (options.depth - 1));
}

// Appends text to QEMU's option syntax, where a comma in a value is written twice.
static char *append_escaped(char *to, const char *text) {
    while (*text) {
        if (*text == ',')
            *to++ = ',';
        *to++ = *text++;
    }
    *to = 0;
    return to;
}

// The -plugin option that this instance was started with, for programs that the guest executes.
static void remember_option(int argc, char **argv) {
    Dl_info info;
    dladdr(&options, &info);
    size_t room = 2 * strlen(info.dli_fname) + 16;
    for (int i = 0; i < argc; i++)
        room += 2 * strlen(argv[i]) + 2;
    char *to = emulator.option = malloc(room);
    if (!to)
        abort();
    to = append_escaped(to + sprintf(to, "file="), info.dli_fname);
    for (int i = 0; i < argc; i++) {
        *to++ = ',';
        to = append_escaped(to, argv[i]);
    }
}

#endif
