#include "ring.h"

#include "calls.h"
#include "options.h"
#include "stream.h"

static uint64_t next_random(struct cpu *c) {
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return c->random * 2685821657736338717u;
}

int64_t jittered(struct cpu *c, uint64_t period) {
    uint64_t jitter = period / 8;
    return (int64_t)(period - jitter + next_random(c) % (2 * jitter + 1));
}

void begin_period(struct cpu *c) {
    c->random = (options.seed + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)(c->index + 1) << 32;
    next_random(c);
    c->until_sample = jittered(c, c->period);
}

void reset_ring(struct cpu *c) {
    c->newest = c->oldest = 0;
    c->period = options.period;
    begin_period(c);
}

// Nobody knows how long a run will be: it begins with a short period, which doubles whenever there
// are too many samples, of all threads. Of those until then, who reads them takes every second one.
static void follow_period(struct cpu *c) {
    static uint64_t kept;  // samples that a period this long would have given
    static uint32_t doublings;
    if (__atomic_add_fetch(&kept, 1, __ATOMIC_RELAXED) == options.most) {
        __atomic_sub_fetch(&kept, options.most / 2, __ATOMIC_RELAXED);
        __atomic_add_fetch(&doublings, 1, __ATOMIC_RELAXED);
    }
    uint64_t period = options.period << __atomic_load_n(&doublings, __ATOMIC_RELAXED);
    if (period == c->period)
        return;
    c->period = period;
    append_record(RECORD_PERIOD, c->tid, &c->period, sizeof c->period, NULL);
}

void append_sample(struct cpu *c, const void *sample, size_t size) {
    if (append(sample, size))
        return;
    c->totals->lost_samples++;
    c->totals->write_error = (uint64_t)stream.error;
}

static uint64_t entries_in_ring(const struct cpu *c) {
    uint64_t entries = c->newest - c->oldest;
    return entries < options.depth ? entries : options.depth;
}

void take_sample(struct cpu *c, uint64_t ip) {
    struct {
        struct record_header header;
        uint64_t frames;
        uint64_t rest[CHAIN_MAX + RING_MAX * sizeof(struct entry) / 8];
    } sample;
    c->until_sample = jittered(c, c->period);
    sample.rest[0] = ip;
    sample.frames = 1 + (c->calls ? copy_callers(c->calls, sample.rest + 1) : 0);
    struct entry *entries = (struct entry *)(sample.rest + sample.frames);
    uint64_t filled = entries_in_ring(c);
    for (uint64_t i = 0; i < filled; i++)
        entries[i] = c->ring[(c->newest - i) % RING_MAX];
    size_t size = (size_t)((uint8_t *)(entries + filled) - (uint8_t *)&sample);
    sample.header = (struct record_header){RECORD_SAMPLE, (uint32_t)size, now(), c->tid, 0};
    c->totals->samples++;
    append_sample(c, &sample, size);
    if (options.most)
        follow_period(c);
}

void put_half(struct cpu *c, uint64_t from, uint64_t to, uint32_t type) {
    if (!options.call_stack && options.filter >> type & 1)
        put_entry(c, from, to, (to ? PRIVILEGE_USER : PREDICTED) | type << TYPE_AT);
}

static inline int is_call(uint32_t kind) { return kind == KIND_CALL || kind == KIND_IND_CALL; }

// Whether open calls were mispredicted, and their cycles, nobody asks: as with --call-graph lbr.
static void follow_call_stack(struct cpu *c, const struct block *b, uint64_t to) {
    uint64_t filled = entries_in_ring(c);
    if (b->kind == KIND_RET && filled) {
        c->oldest = c->newest - filled;
        c->newest--;
    } else if (is_call(b->kind) && to != b->end) {
        put_entry(c, b->from, to, b->flags & ~(uint32_t)PREDICTED);
    }
}

void put_as_asked(struct cpu *c, const struct block *b, uint64_t to, uint32_t wrong,
                  uint32_t ahead) {
    if (c->front_end)
        look_up_branch(c->front_end, b->from, c->totals);
    if (options.call_stack)
        follow_call_stack(c, b, to);
    else if (options.filter >> b->kind & 1)
        put_branch(c, b, to, wrong, ahead);
}
