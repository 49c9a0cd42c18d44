// Reading and writing the guest's memory where its pointers may be wrong: through /proc/self/mem,
// which fails where a plain load would kill the process.

#ifndef LBR_GUEST_MEMORY_H
#define LBR_GUEST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

extern uint64_t guest_base;  // what QEMU adds to the guest's addresses

// Whether all of it could be read, at an address of the emulator's.
int read_host(uint64_t address, void *to, size_t size);

int read_guest(uint64_t address, void *to, size_t size);

// Nothing is written where the guest could not write.
void write_guest(uint64_t address, const void *from, size_t size);

// A copy of a string, NULL if it does not end within mapped memory or within the kernel's limit.
char *copy_guest_string(uint64_t address);

// A copy of a list of strings that ends with NULL; NULL if any part of it can't be read. `extra`
// elements of room are left behind its end.
char **copy_guest_strings(uint64_t address, size_t *count, size_t extra);

#endif
