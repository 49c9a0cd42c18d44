// The blocks that QEMU translated, each known once however often it is translated.

#ifndef LBR_BLOCKS_H
#define LBR_BLOCKS_H

#include <stdint.h>

#include "architecture.h"

#define NOWHERE UINT64_MAX

// A translated block, as far as its end is concerned. Blocks live as long as the process.
struct block {
    uint64_t start;
    uint64_t from;    // its last instruction
    uint64_t end;     // behind it
    uint64_t next;    // where it goes on if no branch is taken, NOWHERE if one always is
    uint64_t target;  // of a direct branch, NOWHERE else
    uint32_t kind;
    uint32_t instructions;
    uint32_t flags;              // of an entry in the ring, if the branch was predicted
    uint32_t is_handler;         // a signal handler starts here
    uint32_t spread_from, step;  // for the predictor: of `from`, and of `start` as a target
    uint32_t number;             // for the counters
    uint32_t map;
    struct block *chain;  // in the table of blocks
};

// Held while the process forks.
void lock_blocks(void);
void unlock_blocks(void);

// How many there are.
uint32_t known_blocks(void);

// The one object for a block: QEMU translates code anew when it likes, counts must stay together.
struct block *intern_block(const struct block *b);

// Where a block goes on, by its last instruction.
void describe_end(struct block *b, struct decoded d);

// A function handles a signal from now on.
void set_handler(uint64_t signal, uint64_t address);

#endif
