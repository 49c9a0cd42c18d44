#include "calls.h"

#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "guest_memory.h"
#include "stream.h"

struct registers registers;

// Where the function that begins with this block will return to; 0 if that can't be read.
static uint64_t return_address(const struct calls *calls) {
    uint64_t address = 0;
    int offset = emulator.architecture->return_address;
    if (offset != ON_STACK)
        return state_word(calls, (size_t)offset);
    return read_guest(calls->pointer, &address, sizeof address) ? address : 0;
}

int try_registers(const struct cpu *c, const struct block *b) {
    enum { STATE_MAX = 64 };
    uint64_t words[STATE_MAX];
    struct calls *calls = c->calls;
    const struct block *last = c->last;
    size_t at = emulator.architecture->stack_pointer;
    if (registers.state == NOT_FOUND || last->kind != KIND_CALL || b->start != last->target ||
        b->start == last->end)
        return 0;
    registers = (struct registers){NOT_FOUND, at, emulator.architecture->pushed_by_call};
    if (calls->state && read_host((uintptr_t)calls->state, words, at + 8)) {
        calls->pointer = words[at / 8];
        if (return_address(calls) == last->end)
            registers.state = FOUND;
    }
    if (registers.state == FOUND)
        return 1;
    calls->pointer = 0;
    append_note(NOTE_NO_STACK_POINTER, 0, c->tid, NULL);
    return 0;
}

int make_room(struct call_stack *s) {
    uint32_t room = s->room ? 2 * s->room : 64;
    struct frame *frames = realloc(s->frames, room * sizeof *frames);
    if (!frames)
        return 0;
    s->frames = frames;
    s->room = room;
    return 1;
}

// Puts a stack that was left, or an empty one, in front of all others.
static void use_stack(struct calls *calls, uint32_t index) {
    struct call_stack chosen = calls->stacks[index];
    memmove(calls->stacks + 1, calls->stacks, index * sizeof chosen);
    calls->stacks[0] = chosen;
}

static void use_new_stack(struct calls *calls) {
    if (!calls->stacks[0].depth)
        return;
    if (calls->count < STACKS_MAX - 1)
        calls->count++;  // else the one that was left first is forgotten
    use_stack(calls, calls->count);
    calls->stacks[0].depth = 0;
}

// Whether a stack that was left goes on here; it then is the one in use. The stack pointer tells:
// what leaves a stack need not come back where its own call would return to (glibc's swapcontext
// for AArch64).
static int return_to_stack(struct calls *calls, uint64_t pointer) {
    for (uint32_t i = 1; i <= calls->count; i++) {
        const struct call_stack *s = &calls->stacks[i];
        if (s->depth && s->frames[s->depth - 1].pointer == pointer) {
            use_stack(calls, i);
            calls->stacks[0].depth--;
            return 1;
        }
    }
    return 0;
}

// By return addresses alone.
static void return_without_pointer(struct call_stack *s, uint64_t to) {
    for (uint32_t depth = s->depth; depth; depth--) {
        if (s->frames[depth - 1].to == to) {
            s->depth = depth - 1;
            return;
        }
    }
}

static void land_elsewhere(struct calls *calls, uint64_t to, uint64_t pointer, uint64_t before) {
    struct call_stack *s = &calls->stacks[0];
    if (return_to_stack(calls, pointer))
        return;
    if (s->depth && s->frames[s->depth - 1].pointer <= pointer && pointer <= s->frames[0].pointer) {
        int is_return = 0;  // to a caller's caller; no frame is older that has this pointer
        for (; s->depth && s->frames[s->depth - 1].pointer <= pointer && !is_return; s->depth--)
            is_return = fits(s, to, pointer);
    } else if (!is_nearby(pointer, before)) {
        use_new_stack(calls);
    }
}

void land_unexpectedly(struct calls *calls, enum kind kind, uint64_t to, uint64_t pointer,
                       uint64_t before) {
    struct call_stack *s = &calls->stacks[0];
    if (registers.state != FOUND && kind == KIND_RET)
        return_without_pointer(s, to);
    else if (registers.state == FOUND &&
             (kind == KIND_RET || !is_nearby(pointer, before) ||
              (s->depth && s->frames[s->depth - 1].pointer < pointer)))
        land_elsewhere(calls, to, pointer, before);
}

static void follow_branch(struct calls *calls, const struct block *last, uint64_t to,
                          uint64_t pointer) {
    if (last->kind == KIND_CALL || last->kind == KIND_IND_CALL)
        follow_call(calls, last, to, pointer);
    else if (last->kind == KIND_RET || last->kind == KIND_IND)
        follow_return(calls, last->kind, to, pointer, calls->before);
}

// Whether the last block's branch was taken before a signal interrupted it at `to`.
static int has_branched(const struct block *last, uint64_t to) {
    if (last->kind == KIND_CALL)
        return to == last->target;
    return to < last->start || to > last->from;
}

void follow_signal(struct calls *calls, const struct block *last) {
    const struct architecture *a = emulator.architecture;
    uint64_t at, pointer, behind = a->pushed_by_call;
    if (registers.state != FOUND)
        return;
    uint64_t to = return_address(calls);
    if (last && last->kind == KIND_IND_CALL && to == last->end) {
        push_frame(calls, to, calls->pointer + behind);
    } else if (read_guest(calls->pointer + a->signal_instruction, &at, sizeof at) &&
               read_guest(calls->pointer + a->signal_stack_pointer, &pointer, sizeof pointer)) {
        if (!last)
            land(calls, KIND_RET, at, pointer, pointer);
        else if (has_branched(last, at))
            follow_branch(calls, last, at, pointer);
        push_frame(calls, at, pointer);
        push_frame(calls, to, calls->pointer + behind);
    }
}

uint64_t copy_callers(const struct calls *calls, uint64_t *to) {
    const struct call_stack *s = &calls->stacks[0];
    uint64_t n = s->depth < CHAIN_MAX - 1 ? s->depth : CHAIN_MAX - 1;  // beside the ip
    for (uint64_t i = 0; i < n; i++)
        to[i] = s->frames[s->depth - 1 - i].to;
    return n;
}

void free_calls(struct calls *calls) {
    for (uint32_t i = 0; calls && i < STACKS_MAX; i++)
        free(calls->stacks[i].frames);
    free(calls);
}
