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
#include <string.h>

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
    uint64_t settled;      // the latest that a call, return or indirect jump or no far move led to
    uint32_t count;
    struct call_stack stacks[STACKS_MAX];  // the one in use first, then the latest left
};

// Where the emulator's registers are, once that has been tried.
struct registers {
    enum { NOT_TRIED, FOUND, NOT_FOUND } state;
    size_t stack_pointer;     // in the emulator's state
    uint64_t pushed_by_call;  // see struct architecture
};

extern struct registers registers;

// Finds out at the first call whether they are where they should be; whether they are.
int try_registers(const struct cpu *c, const struct block *b);

// Room for another frame, or 0.
int make_room(struct call_stack *s);

// A return or an indirect jump does not go where the newest frame says.
void land_unexpectedly(struct calls *calls, enum kind kind, uint64_t to, uint64_t pointer,
                       uint64_t before);

static inline uint64_t state_word(const struct calls *calls, size_t offset) {
    uint64_t word;
    memcpy(&word, calls->state + offset, sizeof word);
    return word;
}

static inline int is_nearby(uint64_t a, uint64_t b) {
    enum { NEARBY = 1 << 14 };
    return a - b + NEARBY < 2 * NEARBY;
}

// A block begins: takes the stack pointer. This and what follows a branch is inlined: it runs for
// most blocks.
static inline void look_at_stack(struct cpu *c, const void *state, const struct block *b) {
    struct calls *calls = c->calls;
    calls->state = state;
    if (__builtin_expect(registers.state != FOUND, 0) && !try_registers(c, b))
        return;
    uint64_t pointer = state_word(calls, registers.stack_pointer);
    calls->before = calls->settled;
    calls->settled = is_nearby(pointer, calls->settled) ? pointer : calls->settled;
    calls->pointer = pointer;
}

static inline void push_frame(struct calls *calls, uint64_t to, uint64_t pointer) {
    struct call_stack *s = &calls->stacks[0];
    if (s->depth < s->room || make_room(s))
        s->frames[s->depth++] = (struct frame){to, pointer};
}

static inline int fits(const struct call_stack *s, uint64_t to, uint64_t pointer) {
    if (!s->depth)
        return 0;
    const struct frame *newest = &s->frames[s->depth - 1];
    return newest->to == to && newest->pointer == pointer;
}

// A return or an indirect jump went to `to`, with this stack pointer there and that one before.
static inline void land(struct calls *calls, enum kind kind, uint64_t to, uint64_t pointer,
                        uint64_t before) {
    const struct call_stack *s = &calls->stacks[0];
    // Stacks grow downwards: an indirect jump inside of the newest frame's callee, the usual one.
    int is_inside = s->depth && pointer < s->frames[s->depth - 1].pointer;
    if (fits(s, to, pointer))
        calls->stacks[0].depth--;
    else if (kind == KIND_RET || !is_inside || !is_nearby(pointer, before))
        land_unexpectedly(calls, kind, to, pointer, before);
}

// The last block has ended by a call of `to`.
static inline void follow_call(struct calls *calls, const struct block *last, uint64_t to,
                               uint64_t pointer) {
    if (to != last->end)
        push_frame(calls, last->end, pointer + (pointer ? registers.pushed_by_call : 0));
    calls->settled = calls->pointer;
}

// The last block has ended by a return or an indirect jump to `to`.
static inline void follow_return(struct calls *calls, enum kind kind, uint64_t to, uint64_t pointer,
                                 uint64_t before) {
    land(calls, kind, to, pointer, before);
    calls->settled = calls->pointer;
}

// A signal handler begins, or a function that is one besides.
void follow_signal(struct calls *calls, const struct block *last);

// Copies the innermost return addresses, the newest first; their number.
uint64_t copy_callers(const struct calls *calls, uint64_t *to);

void free_calls(struct calls *calls);

#endif
