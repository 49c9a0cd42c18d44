#include "cache.h"

#include <stdlib.h>
#include <string.h>

int make_cache(struct cache *cache, uint32_t entries, uint32_t ways) {
    *cache = (struct cache){entries / ways, ways, calloc(entries, sizeof *cache->keys)};
    return cache->keys != NULL;
}

void free_cache(struct cache *cache) { free(cache->keys); }

int misses_older(uint64_t *set, uint32_t ways, uint64_t key) {
    uint32_t at = 1;
    while (at < ways && set[at] != key)
        at++;
    int is_missing = at == ways;
    memmove(set + 1, set, (is_missing ? ways - 1 : at) * sizeof *set);
    *set = key;
    return is_missing;
}
