#define _GNU_SOURCE  // dladdr
#include "emulator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct emulator emulator = {.started = UINT64_MAX};

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

static void remember_option(int argc, char **argv) {
    Dl_info info;
    dladdr(&emulator, &info);
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

void remember_emulator(int argc, char **argv) {
    ssize_t size = readlink("/proc/self/exe", emulator.self, sizeof emulator.self - 1);
    emulator.self[size > 0 ? size : 0] = 0;
    remember_option(argc, argv);
}
