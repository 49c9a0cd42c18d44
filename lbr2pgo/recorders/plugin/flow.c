#include "flow.h"

#include <string.h>

#include "calls.h"
#include "counters.h"
#include "options.h"
#include "ring.h"

const struct block nowhere = {
    .start = NOWHERE, .from = NOWHERE, .end = NOWHERE, .next = NOWHERE, .target = NOWHERE,
};

static void follow_calls(struct cpu *c, const struct block *last, uint64_t to) {
    if (c->calls)
        follow_branch(c->calls, last, to, c->calls->pointer, c->calls->before);
}

static int mispredicts_direction(struct cpu *c, const struct block *last, uint32_t taken) {
    if (c->front_end)
        foresee_direction(c->front_end, last->from, taken, c->totals);
    return mispredicts_condition(&c->predictor, last->from, (int)taken);
}

static void took_direct(struct cpu *c, const struct block *last, uint32_t ahead) {
    int wrong = 0;
    if (last->kind == KIND_COND)
        wrong = mispredicts_direction(c, last, 1);
    else if (last->kind == KIND_CALL)
        expect_return(&c->predictor, last->end);
    if (options.exact) {
        struct block_count *count = count_of(c, last);
        if (count) {
            count->taken++;
            count->taken_mispredicted += (uint64_t)wrong;
        }
    }
    follow_calls(c, last, last->target);
    record_branch(c, last, last->target, wrong, ahead);
}

static void passed_condition(struct cpu *c, const struct block *last) {
    int wrong = mispredicts_direction(c, last, 0);
    c->totals->not_taken++;
    if (wrong) {
        c->totals->mispredicted++;
        c->stalled += MISPREDICTION_CYCLES * INSTRUCTIONS_PER_CYCLE;
    }
    if (options.exact) {
        struct block_count *count = count_of(c, last);
        if (count) {
            count->not_taken++;
            count->not_taken_mispredicted += (uint64_t)wrong;
        }
    }
}

static int is_indirect(uint32_t kind) {
    return kind == KIND_IND || kind == KIND_IND_CALL || kind == KIND_RET;
}

static void count_target(struct cpu *c, const struct block *last, uint32_t target_block,
                         int wrong) {
    if (!options.exact || !c->counts)
        return;
    struct target_count *count = target_of(c, last->number, target_block);
    if (count) {
        count->count++;
        count->mispredicted += (uint64_t)wrong;
    }
}

static void took_indirect(struct cpu *c, const struct block *last, const struct block *b) {
    int is_return = last->kind == KIND_RET;
    int wrong = is_return ? mispredicts_return(&c->predictor, b->start)
                          : mispredicts_target(&c->predictor, last->from, b->start);
    c->totals->wrong_returns += (uint64_t)(is_return && wrong);
    if (!is_return && c->front_end)
        foresee_target(c->front_end, last->from, b->start, c->totals);
    if (last->kind == KIND_IND_CALL)
        expect_return(&c->predictor, last->end);
    count_target(c, last, b->number, wrong);
    follow_calls(c, last, b->start);
    record_branch(c, last, b->start, wrong, b->instructions);
}

// QEMU may leave a block in the middle and begin again there. It also shows a block's last
// instruction in vain if that reaches into the next page: it then begins a block of its own.
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
static void forget_called_handler(struct cpu *c, const struct block *b) {
    const struct interruption *i = &c->interrupted[c->interruptions - 1];
    if (i->last->kind != KIND_IND_CALL || b->start != i->last->end)
        return;
    c->interruptions--;
    c->totals->taken++;
    count_target(c, i->last, i->handler_block, 0);
}

__attribute__((noinline)) static void go_elsewhere(struct cpu *c, const struct block *last,
                                                   const struct block *b) {
    if (c->returning) {
        return_from_handler(c, b);
    } else if (last->kind == KIND_SYSCALL && b->start == last->end) {
        put_half(c, last->from, 0, KIND_SYSCALL);
        put_half(c, 0, b->start, KIND_ERET);
    } else if (b->start == last->from && last->from != last->start) {
        c->totals->instructions -= 1;  // shown in vain, see restarts()
    } else if (is_indirect(last->kind) && !b->is_handler) {
        if (c->interruptions && last->kind == KIND_RET)
            forget_called_handler(c, b);
        took_indirect(c, last, b);
    } else if (last == &nowhere) {
        return;
    } else if (restarts(last, b)) {
        c->totals->instructions -= b->instructions;
    } else {
        c->totals->unexplained += !b->is_handler;
        enter_handler(c, last, b);
    }
}

void enter_block(struct cpu *c, const struct block *b) {
    const struct block *last = c->last;
    c->last = b;
    c->totals->instructions += b->instructions;
    if (c->front_end)
        fetch_block(c->front_end, b, c->totals, c->tid);
    if (b->start == last->next) {
        if (last->kind == KIND_COND)
            passed_condition(c, last);
    } else if (b->start == last->target) {
        if (last->kind != KIND_REPEAT)
            took_direct(c, last, b->instructions);
        else
            c->totals->instructions -= b->instructions;
    } else {
        go_elsewhere(c, last, b);
    }
}
