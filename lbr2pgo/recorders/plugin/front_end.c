#include "front_end.h"

#include <stdlib.h>

#include "options.h"
#include "stream.h"

struct front_end *make_front_end(void) {
    struct front_end *front_end = calloc(1, sizeof *front_end);
    int is_made = front_end != NULL;
    for (int i = 0; is_made && i < STRUCTURES; i++) {
        struct geometry g = options.geometries[i];
        is_made = make_cache(&front_end->caches[i], g.entries, g.ways);
    }
    if (is_made)
        return front_end;
    free_front_end(front_end);
    return NULL;
}

void free_front_end(struct front_end *front_end) {
    if (!front_end)
        return;
    for (int i = 0; i < STRUCTURES; i++)
        free_cache(&front_end->caches[i]);
    free(front_end);
}

// The second of two levels is only asked for what the first one lacks; whether that did.
static int look_up(const struct front_end *front_end, enum structure first, uint64_t key,
                   struct totals *totals) {
    if (!misses(&front_end->caches[first], key))
        return 0;
    totals->missed[first]++;
    totals->missed[first + 1] += (uint64_t)misses(&front_end->caches[first + 1], key);
    return 1;
}

static void sample_miss(struct front_end *front_end, uint64_t address, int32_t tid) {
    if (++front_end->misses < options.misses)
        return;
    front_end->misses = 0;
    append_record(RECORD_MISS, tid, &address, sizeof address, NULL);
}

void fetch_block(struct front_end *front_end, const struct block *b, struct totals *totals,
                 int32_t tid) {
    enum { LINE = 6, PAGE = 12 };
    uint64_t last = b->end - 1;
    for (uint64_t page = b->start >> PAGE; page <= last >> PAGE; page++)
        look_up(front_end, ITLB, page, totals);
    for (uint64_t line = b->start >> LINE; line <= last >> LINE; line++)
        if (look_up(front_end, L1I, line, totals))
            sample_miss(front_end, line << LINE > b->start ? line << LINE : b->start, tid);
}
