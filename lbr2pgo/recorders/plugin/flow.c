#include "flow.h"

#include <string.h>

#include "calls.h"
#include "counters.h"
#include "options.h"
#include "ring.h"

#define INLINE static inline __attribute__((always_inline))

const struct block nowhere = {
    .start = NOWHERE, .from = NOWHERE, .end = NOWHERE, .next = NOWHERE, .target = NOWHERE,
};

static void count_direct(struct cpu *c, const struct block *last, uint32_t wrong) {
    if (c->front_end && last->kind == KIND_COND)
        foresee_direction(c->front_end, last->from, 1, c->totals);
    struct block_count *count = options.exact ? count_of(c, last) : NULL;
    if (count) {
        count->taken++;
        count->taken_mispredicted += wrong;
    }
}

INLINE void took_direct(struct cpu *c, const struct block *last, enum kind kind, uint32_t ahead,
                        int more) {
    uint32_t wrong = 0;
    if (kind == KIND_COND) {
        wrong = mispredicts_condition(&c->predictor, last->spread_from, 1);
    } else if (kind == KIND_CALL) {
        expect_return(&c->predictor, last->end);
        if (c->calls)
            follow_call(c->calls, last, last->target, c->calls->pointer);
    }
    if (more)
        count_direct(c, last, wrong);
    record_branch(c, last, last->target, wrong, ahead, more);
}

static void count_passed(struct cpu *c, const struct block *last, uint32_t wrong) {
    if (c->front_end)
        foresee_direction(c->front_end, last->from, 0, c->totals);
    struct block_count *count = options.exact ? count_of(c, last) : NULL;
    if (count) {
        count->not_taken++;
        count->not_taken_mispredicted += wrong;
    }
}

INLINE void passed_condition(struct cpu *c, const struct block *last, int more) {
    uint32_t wrong = mispredicts_condition(&c->predictor, last->spread_from, 0);
    c->totals->not_taken++;
    c->totals->mispredicted += wrong;
    stall(c, wrong);
    if (more)
        count_passed(c, last, wrong);
}

static int is_indirect(uint32_t kind) {
    return kind == KIND_IND || kind == KIND_IND_CALL || kind == KIND_RET;
}

static void count_target(struct cpu *c, const struct block *last, uint32_t target_block,
                         uint32_t wrong) {
    if (!options.exact || !c->counts)
        return;
    struct target_count *count = target_of(c, last->number, target_block);
    if (count) {
        count->count++;
        count->mispredicted += wrong;
    }
}

static void count_indirect(struct cpu *c, const struct block *last, const struct block *b,
                           uint32_t wrong) {
    if (c->front_end && last->kind != KIND_RET)
        foresee_target(c->front_end, last->from, b->start, c->totals);
    count_target(c, last, b->number, wrong);
}

// QEMU shows a block's last instruction in vain if that reaches into the next page: it then begins a
// block of its own.
static int repeats_end(const struct block *last, const struct block *b) {
    return b->start == last->from && last->from != last->start;
}

// QEMU may leave a block in the middle and begin again there, or at its last instruction.
static int restarts(const struct block *last, const struct block *b) {
    return b->start >= last->start && b->start <= last->from;
}

static void enter_handler(struct cpu *c, const struct block *last, const struct block *b) {
    if (c->interruptions == SIGNALS_MAX) {  // handlers left by longjmp: forget the oldest
        memmove(c->interrupted, c->interrupted + 1, sizeof c->interrupted - sizeof *c->interrupted);
        c->interruptions--;
    }
    c->interrupted[c->interruptions++] = (struct interruption){last, b->start, b->number};
    if (c->calls)
        follow_signal(c->calls, last);
    put_half(c, 0, b->start, KIND_ERET);
}

// What an interrupted block did, now that it is known where the thread went on: counted, but too
// late for the ring.
static void settle(struct cpu *c, const struct block *last, const struct block *b) {
    struct block_count *count = options.exact ? count_of(c, last) : NULL;
    if (b->start == last->target && last->kind != KIND_REPEAT) {
        c->totals->taken++;
        if (count)
            count->taken++;
    } else if (b->start == last->next) {
        if (last->kind == KIND_COND) {
            c->totals->not_taken++;
            if (count)
                count->not_taken++;
        }
    } else if (is_indirect(last->kind) && !(restarts(last, b) && b->start != last->start)) {
        c->totals->taken++;
        count_target(c, last, b->number, 0);
    }
}

static int explains(const struct block *last, const struct block *b) {
    return b->start == last->next || b->start == last->target || restarts(last, b);
}

// The first block after rt_sigreturn: where the signal had come, or the handler of the next one.
static void return_from_handler(struct cpu *c, const struct block *b) {
    c->returning = 0;
    put_half(c, 0, b->start, KIND_ERET);
    if (!c->interruptions)
        return;
    const struct block *last = c->interrupted[c->interruptions - 1].last;
    if (b->is_handler && !explains(last, b)) {
        c->interrupted[c->interruptions - 1].handler = b->start;
        if (c->calls)
            follow_signal(c->calls, NULL);
        return;
    }
    if (c->calls)
        land(c->calls, KIND_RET, b->start, c->calls->pointer, c->calls->before);
    c->interruptions--;
    settle(c, last, b);
}

// A handler that was called like any function returns behind the call.
static void forget_called_handler(struct cpu *c, const struct block *last,
                                  const struct block *b) {
    const struct interruption *i = &c->interrupted[c->interruptions - 1];
    if (last->kind != KIND_RET || i->last->kind != KIND_IND_CALL || b->start != i->last->end)
        return;
    c->interruptions--;
    c->totals->taken++;
    count_target(c, i->last, i->handler_block, 0);
}

__attribute__((noinline)) static void go_elsewhere(struct cpu *c, const struct block *last,
                                                   const struct block *b) {
    if (last->kind == KIND_REPEAT && b->start == last->target) {
        c->totals->instructions -= b->instructions;
    } else if (c->returning) {
        return_from_handler(c, b);
    } else if (last->kind == KIND_SYSCALL && b->start == last->end) {
        put_half(c, last->from, 0, KIND_SYSCALL);
        put_half(c, 0, b->start, KIND_ERET);
    } else if (repeats_end(last, b)) {
        c->totals->instructions -= 1;
    } else if (last == &nowhere) {
        return;
    } else if (restarts(last, b)) {
        c->totals->instructions -= b->instructions;
    } else {
        c->totals->unexplained += !b->is_handler;
        enter_handler(c, last, b);
    }
}

INLINE void took_indirect(struct cpu *c, const struct block *last, enum kind kind,
                          const struct block *b, int more) {
    uint32_t wrong;
    if (c->interruptions)
        forget_called_handler(c, last, b);
    if (kind == KIND_RET) {
        wrong = mispredicts_return(&c->predictor, b->start);
        c->totals->wrong_returns += wrong;
    } else {
        wrong = mispredicts_target(&c->predictor, last->spread_from, b->start, b->step);
    }
    if (kind == KIND_IND_CALL)
        expect_return(&c->predictor, last->end);
    if (c->calls && kind == KIND_IND_CALL)
        follow_call(c->calls, last, b->start, c->calls->pointer);
    else if (c->calls)
        follow_return(c->calls, kind, b->start, c->calls->pointer, c->calls->before);
    if (more)
        count_indirect(c, last, b, wrong);
    record_branch(c, last, b->start, wrong, b->instructions, more);
}

// Whether an indirect branch leads here, and not a signal or an instruction shown in vain.
static int is_reached(const struct cpu *c, const struct block *last, const struct block *b) {
    return !c->returning && !b->is_handler && !repeats_end(last, b);
}

// What the last block's branch was is asked once: all else follows from it.
INLINE void enter(struct cpu *c, const struct block *b, int more) {
    const struct block *last = c->last;
    c->last = b;
    c->totals->instructions += b->instructions;
    if (more && c->front_end)
        fetch_block(c->front_end, b, c->totals, c->tid);
    switch (last->kind) {
    case KIND_COND:
        if (b->start == last->next)
            return passed_condition(c, last, more);
        if (b->start == last->target)
            return took_direct(c, last, KIND_COND, b->instructions, more);
        break;
    case KIND_UNCOND:
        if (b->start == last->target)
            return took_direct(c, last, KIND_UNCOND, b->instructions, more);
        break;
    case KIND_CALL:
        if (b->start == last->target)
            return took_direct(c, last, KIND_CALL, b->instructions, more);
        break;
    case KIND_IND:
        if (is_reached(c, last, b))
            return took_indirect(c, last, KIND_IND, b, more);
        break;
    case KIND_IND_CALL:
        if (is_reached(c, last, b))
            return took_indirect(c, last, KIND_IND_CALL, b, more);
        break;
    case KIND_RET:
        if (is_reached(c, last, b))
            return took_indirect(c, last, KIND_RET, b, more);
        break;
    default:
        if (b->start == last->next)
            return;
        break;
    }
    go_elsewhere(c, last, b);
}

void enter_block(struct cpu *c, const struct block *b) { enter(c, b, 0); }

void enter_block_in_full(struct cpu *c, const struct block *b) { enter(c, b, 1); }
