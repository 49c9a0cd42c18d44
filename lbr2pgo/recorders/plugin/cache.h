// A table of keys in sets, each of which forgets what it used least recently: a cache, a TLB or a
// branch target buffer, as far as what it holds is concerned.

#ifndef LBR_CACHE_H
#define LBR_CACHE_H

#include <stdint.h>

struct cache {
    uint32_t sets;  // a power of two
    uint32_t ways;
    uint64_t *keys;  // by set, the newest first; 0 is none
};

// Empty, with so many entries in sets of so many ways; 0 without memory.
int make_cache(struct cache *cache, uint32_t entries, uint32_t ways);

void free_cache(struct cache *cache);

// The key is not the newest of its set: makes it that; whether it was missing.
int misses_older(uint64_t *set, uint32_t ways, uint64_t key);

// Looks a key up, and has it from now on; whether it was missing.
static inline int misses(const struct cache *cache, uint64_t key) {
    uint64_t *set = cache->keys + (key & (cache->sets - 1)) * cache->ways;
    return *set != key && misses_older(set, cache->ways, key);
}

#endif
