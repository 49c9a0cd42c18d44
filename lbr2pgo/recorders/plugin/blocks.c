#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>

#include "options.h"
#include "predictor.h"
#include "stream.h"

enum { BLOCK_TABLE = 1 << 16, HANDLERS_MAX = 65 };

static struct {
    pthread_mutex_t lock;
    struct block *table[BLOCK_TABLE];
    uint32_t count;
    uint64_t handlers[HANDLERS_MAX];  // by signal
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lock_blocks(void) { pthread_mutex_lock(&blocks.lock); }

void unlock_blocks(void) { pthread_mutex_unlock(&blocks.lock); }

uint32_t known_blocks(void) { return blocks.count; }

static uint32_t block_hash(uint64_t start) { return (uint32_t)(start * 0x9e3779b97f4a7c15u >> 48); }

static int same_block(const struct block *a, const struct block *b) {
    return a->start == b->start && a->from == b->from && a->end == b->end && a->kind == b->kind &&
           a->target == b->target && a->map == b->map && a->instructions == b->instructions;
}

static int handles_signals(uint64_t address) {
    for (int i = 0; i < HANDLERS_MAX; i++)
        if (blocks.handlers[i] == address && address > 1)  // neither SIG_DFL nor SIG_IGN
            return 1;
    return 0;
}

static void append_block(const struct block *b) {
    struct block_record body = {b->start,  b->from, b->end,  b->target,
                                b->number, b->map,  b->kind, 0};
    append_record(RECORD_BLOCK, 0, &body, sizeof body, NULL);
}

struct block *intern_block(const struct block *b) {
    lock_blocks();
    struct block **bucket = &blocks.table[block_hash(b->start) % BLOCK_TABLE];
    struct block *known = *bucket;
    while (known && !same_block(known, b))
        known = known->chain;
    if (!known && (known = malloc(sizeof *known))) {
        *known = *b;
        known->number = ++blocks.count;
        known->spread_from = spread(b->from);
        known->step = step_of(b->start);
        known->is_handler = (uint32_t)handles_signals(b->start);
        known->chain = *bucket;
        *bucket = known;
        if (options.exact)
            append_block(known);
    }
    unlock_blocks();
    return known;
}

void describe_end(struct block *b, struct decoded d) {
    b->kind = d.kind;
    b->flags = PRIVILEGE_USER | PREDICTED | (uint32_t)d.kind << TYPE_AT;
    b->target = NOWHERE;
    b->next = NOWHERE;
    switch (d.kind) {
    case KIND_COND:
        b->target = d.target;
        b->next = b->end;
        break;
    case KIND_UNCOND:
    case KIND_CALL:
        b->target = d.target;
        break;
    case KIND_REPEAT:
        b->target = b->from;
        b->next = b->end;
        break;
    case KIND_SYSCALL:
        b->next = options.halves ? NOWHERE : b->end;
        break;
    case KIND_OTHER:
    case KIND_TRAP:
        b->next = b->end;
        break;
    default:
        break;
    }
}

void set_handler(uint64_t signal, uint64_t address) {
    if (signal >= HANDLERS_MAX)
        return;
    lock_blocks();
    blocks.handlers[signal] = address;
    for (struct block *b = blocks.table[block_hash(address) % BLOCK_TABLE]; b; b = b->chain)
        if (b->start == address)
            b->is_handler = (uint32_t)handles_signals(address);
    unlock_blocks();
}
