// From block to block: what the last instruction of one did, now that the next one begins.

#ifndef LBR_FLOW_H
#define LBR_FLOW_H

#include "cpu.h"

// Where a thread was before its first block.
extern const struct block nowhere;

// A thread begins to run a block.
void enter_block(struct cpu *c, const struct block *b);

// The same where more is wanted than last branches of all kinds, and call chains.
void enter_block_in_full(struct cpu *c, const struct block *b);

#endif
