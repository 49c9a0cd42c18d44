#include "tagged.h"

enum { CONFIDENT = 3, USEFUL = 3 };

// Bits of the history that a table looks at.
static const unsigned lengths[HISTORIES] = {5, 13, 30, 64};

// The highest bits are the place in a table, the next ones the tag.
static uint64_t mixed(uint64_t from, uint64_t history, unsigned length) {
    uint64_t seen = history & (~(uint64_t)0 >> (64 - length));
    return (from * 0x9e3779b97f4a7c15u ^ (seen + length)) * 0xd6e8feb86659fd93u;
}

static uint64_t place(uint64_t mix) { return mix >> (64 - TABLE_BITS); }

static void learn(struct guess *guess, uint32_t value) {
    if (guess->value == value)
        guess->confidence += guess->confidence < CONFIDENT;
    else if (guess->confidence)
        guess->confidence--;
    else
        guess->value = value;
}

// Takes the place of a useless entry behind a longer history than the one that was wrong.
static void allocate(struct guess **found, const uint16_t *tags, int from, uint32_t value) {
    for (int i = from; i < HISTORIES; i++) {
        if (!found[i]->useful) {
            *found[i] = (struct guess){value, tags[i], 0, 0};
            return;
        }
        found[i]->useful--;
    }
}

int mispredicts(struct tagged *tagged, uint64_t from, uint64_t history, uint32_t value) {
    struct guess *found[HISTORIES], *base = &tagged->base[place(mixed(from, 0, 1))];
    struct guess *longest = base, *other = base;
    uint16_t tags[HISTORIES];
    int next = 0;  // the table behind the longest that knows the branch
    for (int i = 0; i < HISTORIES; i++) {
        uint64_t mix = mixed(from, history, lengths[i]);
        found[i] = &tagged->tables[i][place(mix)];
        tags[i] = (uint16_t)(mix >> (48 - TABLE_BITS));
        if (found[i]->tag == tags[i]) {
            other = longest;
            longest = found[i];
            next = i + 1;
        }
    }
    int wrong = longest->value != value;
    if (longest != base && (other->value == value) == wrong)
        longest->useful += wrong ? -(longest->useful > 0) : longest->useful < USEFUL;
    learn(longest, value);
    if (wrong)
        allocate(found, tags, next, value);
    return wrong;
}
