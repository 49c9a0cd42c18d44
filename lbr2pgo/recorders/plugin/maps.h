// The guest's file mappings and executable memory, followed through its own system calls.

#ifndef LBR_MAPS_H
#define LBR_MAPS_H

#include <stdint.h>

struct region {
    uint64_t start, end, offset;
    char *path;       // shared by the pieces of a split region, never freed
    uint32_t serial;  // of the map record; 0 until it is executable
};

// Whoever changes the maps holds their lock.
void lock_maps(void);
void unlock_maps(void);

// How many were recorded.
uint32_t recorded_maps(void);

uint64_t page_down(uint64_t address);
uint64_t page_up(uint64_t address);

// The serial of the map that holds an address. It takes the lock.
uint32_t serial_at(uint64_t address);

// Whether an address is in a mapping of a file. It takes the lock.
int is_of_file(uint64_t address);

// Cuts [start, end) out of what is known; a region may fall into two pieces.
void remove_range(uint64_t start, uint64_t end);

// A mapping at a place of its own: what was there before is gone.
void map_range(struct region region, int executable, int32_t tid);

// mprotect: known pieces become executable; memory of no file is known only while it is code.
void protect_range(uint64_t start, uint64_t end, int executable, int32_t tid);

// mremap: a mapping, or a part of one, lies elsewhere now.
void move_range(uint64_t from, uint64_t size, uint64_t to, uint64_t new_size, int32_t tid);

// The path behind a descriptor, as the host sees it; never freed, a program maps few files.
char *path_of_descriptor(int descriptor);

#endif
