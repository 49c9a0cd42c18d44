#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "predictor.h"
#include "stream.h"

struct options options = {.period = 10007, .depth = 32, .returns = 16, .misses = UINT64_MAX, .most = UINT64_MAX, .filter = UINT64_MAX};

static int is_power_of_two(uint32_t number) { return number && !(number & (number - 1)); }

static uint64_t number_of(const char *text) { return strtoull(text, NULL, 0); }

static void set_option(const char *name, size_t size, const char *value) {
    struct {
        const char *name;
        int *flag;
    } flags[] = {
        {"callstack", &options.call_stack}, {"callgraph", &options.call_graph},
        {"cycles", &options.cycles},        {"exact", &options.exact},
        {"halves", &options.halves},        {"exec", &options.exec},
        {"alike", &options.alike},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strlen(flags[i].name) == size && !memcmp(name, flags[i].name, size))
            *flags[i].flag = value[0] == '1';
    struct {
        const char *name;
        uint64_t *number;
    } values[] = {
        {"period", &options.period}, {"seed", &options.seed}, {"filter", &options.filter},
        {"misses", &options.misses}, {"accesses", &options.accesses},
        {"most", &options.most},     {"until", &options.until}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strlen(values[i].name) == size && !memcmp(name, values[i].name, size))
            *values[i].number = number_of(value);
    if (!strncmp(name, "dir=", 4))
        stream.directory = value;
    else if (!strncmp(name, "untilin=", 8))
        options.until_in = value;
    else if (!strncmp(name, "sysroot=", 8))
        emulator.sysroot = value;
    else if (!strncmp(name, "depth=", 6))
        options.depth = (uint32_t)number_of(value);
    else if (!strncmp(name, "returns=", 8))
        options.returns = (uint32_t)number_of(value);
    else if (!strncmp(name, "machine=", 8))
        emulator.architecture = architecture_of(number_of(value));
}

// Such as l1i=512/8: entries and ways.
static void set_geometry(const char *name, size_t size, const char *value) {
    static const char *const names[STRUCTURES] = {"l1i", "l2", "itlb", "stlb", "btb"};
    for (int i = 0; i < STRUCTURES; i++) {
        if (strlen(names[i]) != size || memcmp(name, names[i], size))
            continue;
        char *rest;
        options.geometries[i].entries = (uint32_t)strtoul(value, &rest, 10);
        options.geometries[i].ways = (uint32_t)number_of(rest + (*rest == '/'));
    }
}

static int fits_geometries(void) {
    int simulated = options.geometries[L1I].entries != 0;
    for (int i = 0; i < STRUCTURES; i++) {
        struct geometry g = options.geometries[i];
        if (simulated && (!g.ways || g.entries % g.ways || !is_power_of_two(g.entries / g.ways)))
            return 0;
    }
    return 1;
}

int read_options(int argc, char **argv) {
    enum { DEPTH_MAX = 64 };
    const uint64_t BRANCHES = 1 << KIND_COND | 1 << KIND_UNCOND | 1 << KIND_IND | 1 << KIND_CALL |
                              1 << KIND_IND_CALL | 1 << KIND_RET;
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (equals) {
            set_option(argv[i], (size_t)(equals - argv[i]), equals + 1);
            set_geometry(argv[i], (size_t)(equals - argv[i]), equals + 1);
        }
    }
    options.wants_more = options.call_stack || options.alike || options.exact ||
                         options.geometries[L1I].entries || (options.filter & BRANCHES) != BRANCHES;
    return stream.directory && emulator.architecture && options.period && options.misses &&
           options.depth <= DEPTH_MAX && is_power_of_two(options.depth) &&
           options.returns <= RETURN_STACK_MAX && is_power_of_two(options.returns) &&
           fits_geometries();
}
