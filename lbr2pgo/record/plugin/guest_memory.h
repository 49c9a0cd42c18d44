// Reading the guest's memory where its pointers may be wrong: through /proc/self/mem, which fails
// where a plain load would kill the process.

#ifndef LBR_GUEST_MEMORY_H
#define LBR_GUEST_MEMORY_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t guest_base;  // what QEMU adds to the guest's addresses

// Whether all of it could be read, at an address of the emulator's.
static int read_host(uint64_t address, void *to, size_t size) {
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        return 0;
    ssize_t got = pread(memory, to, size, (off_t)address);
    close(memory);
    return got == (ssize_t)size;
}

static int read_guest(uint64_t address, void *to, size_t size) {
    return read_host(guest_base + address, to, size);
}

// A copy of a string, NULL if it does not end within mapped memory or within the kernel's limit.
static char *copy_guest_string(uint64_t address) {
    enum { STEP = 256, LIMIT = 1 << 17 };  // Linux: MAX_ARG_STRLEN
    char *text = NULL;
    for (size_t size = 0; size < LIMIT;) {
        size_t step = STEP - (size_t)((address + size) % STEP);  // never across a page's end
        char *grown = realloc(text, size + step);
        if (!grown)
            break;
        text = grown;
        if (!read_guest(address + size, text + size, step))
            break;
        if (memchr(text + size, 0, step))
            return text;
        size += step;
    }
    free(text);
    return NULL;
}

// A copy of a list of strings that ends with NULL; NULL if any part of it can't be read. `extra`
// elements of room are left behind its end.
static char **copy_guest_strings(uint64_t address, size_t *count, size_t extra) {
    char **list = NULL;
    for (*count = 0;; ++*count) {
        char **grown = realloc(list, (*count + 1 + extra) * sizeof *list);
        uint64_t pointer = 0;
        if (!grown)
            break;
        list = grown;
        list[*count] = NULL;
        if (address && !read_guest(address + 8 * *count, &pointer, sizeof pointer))
            break;
        if (!pointer)
            return list;
        if (!(list[*count] = copy_guest_string(pointer)))
            break;
    }
    free(list);
    return NULL;
}

#endif
