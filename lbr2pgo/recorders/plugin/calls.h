// Who called whom: a shadow stack of return addresses, exact through whatever a program does.
//
// A call pushes a frame: where it will return to, and what the stack pointer will be then. The
// return that fits the newest frame pops it. A jump keeps the frames (a switch, a tail call),
// unless it moves the stack pointer: upwards past frames it leaves their functions (longjmp, a
// caught exception); anywhere else it goes to another stack (a coroutine), with frames of its own,
// which are remembered until the stack pointer is that of their newest one again. A signal pushes
// two frames: the interrupted instruction, and what the handler returns to.
//
// The stack pointer is the emulator's, as each block begins: see execution.c. Where it can't be had,
// frames go by return addresses alone, and the stream says so.

#ifndef LBR_CALLS_H
#define LBR_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"

enum { STACKS_MAX = 1024, CHAIN_MAX = 127 };  // Linux: PERF_MAX_STACK_DEPTH

struct frame {
    uint64_t to, pointer;  // the return address, and the stack pointer behind the return
};

struct call_stack {
    struct frame *frames;  // the newest is the last
    uint32_t depth, room;
};

struct calls {
    const uint8_t *state;  // the emulator's of this processor, as the block begins
    uint64_t pointer;      // the stack pointer as the block begins, 0 if unknown
    uint64_t before;       // the same of the block before, or before it moved far
    uint32_t has_moved;    // since the last call, return or indirect jump, in one block by far
    uint32_t count;
    struct call_stack stacks[STACKS_MAX];  // the one in use first, then the latest left
};

// A block begins: takes the stack pointer.
void look_at_stack(struct cpu *c, const void *state, const struct block *b);

// A return or an indirect jump went to `to`, with this stack pointer there and that one before.
void land(struct calls *calls, enum kind kind, uint64_t to, uint64_t pointer, uint64_t before);

// The last block has ended by a branch to `to`.
void follow_branch(struct calls *calls, const struct block *last, uint64_t to, uint64_t pointer,
                   uint64_t before);

// A signal handler begins, or a function that is one besides.
void follow_signal(struct calls *calls, const struct block *last);

// Copies the innermost return addresses, the newest first; their number.
uint64_t copy_callers(const struct calls *calls, uint64_t *to);

void free_calls(struct calls *calls);

#endif
