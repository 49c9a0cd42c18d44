#include "guest_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t guest_base;

int read_host(uint64_t address, void *to, size_t size) {
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        return 0;
    ssize_t got = pread(memory, to, size, (off_t)address);
    close(memory);
    return got == (ssize_t)size;
}

int read_guest(uint64_t address, void *to, size_t size) {
    return read_host(guest_base + address, to, size);
}

void write_guest(uint64_t address, const void *from, size_t size) {
    int memory = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (memory < 0)
        return;
    ssize_t put = pwrite(memory, from, size, (off_t)(guest_base + address));
    (void)put;
    close(memory);
}

char *copy_guest_string(uint64_t address) {
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

char **copy_guest_strings(uint64_t address, size_t *count, size_t extra) {
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
