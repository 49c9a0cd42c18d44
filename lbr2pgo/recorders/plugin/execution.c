#include "execution.h"

#include "calls.h"
#include "emulator.h"
#include "flow.h"
#include "process.h"
#include "ring.h"
#include "stream.h"
#include "turns.h"

// `state` is the emulator's of the processor, its CPUArchState.
__attribute__((used)) static void begins(unsigned vcpu, void *data, const void *state) {
    struct cpu *c = cpu_of(vcpu);
    if (c->calls)
        look_at_stack(c, state, data);
    enter_block(c, data);
}

__attribute__((used)) static void begins_in_full(unsigned vcpu, void *data, const void *state) {
    struct cpu *c = cpu_of(vcpu);
    const struct block *b = data;
    if (turns_are_taken)
        take_turn(c->index, b->instructions);
    if (c->calls)
        look_at_stack(c, state, b);
    enter_block_in_full(c, b);
}

// Generated code keeps the state in a register (QEMU: TCG_AREG0 in tcg/*/tcg-target.h), and at the
// beginning of a block all of the guest's registers are in it. Versions before 9 have no other way
// to a register, and later ones look each up by its name.
#if defined(__x86_64__)
#define PASS_STATE(to) "movq %rbp, %rdx\n jmp " #to "\n"
#elif defined(__aarch64__)
#define PASS_STATE(to) "mov x2, x19\n b " #to "\n"
#endif

#ifdef PASS_STATE
#define WITH_STATE(callback, function)                                                             \
    __asm__(".pushsection .text\n.globl " #callback "\n.hidden " #callback "\n" #callback ":\n"    \
            PASS_STATE(function) ".popsection\n")
#else
#define WITH_STATE(callback, function)                                                             \
    void callback(unsigned vcpu, void *data) { function(vcpu, data, NULL); }                       \
    _Static_assert(1, "")
#endif

WITH_STATE(block_begins, begins);
WITH_STATE(block_begins_in_full, begins_in_full);

// How much the dynamic loader does depends on the environment and on paths: the period begins anew
// with the program's own code, so that these don't decide which of its branches are sampled.
void program_begins(unsigned vcpu, void *data) {
    static int has_begun;
    (void)data;
    if (!has_begun)
        begin_period(cpu_of(vcpu));
    has_begun = 1;
}

void start_ends(unsigned vcpu, void *data) {
    static int has_ended;
    (void)data;
    if (__atomic_exchange_n(&has_ended, 1, __ATOMIC_RELAXED))
        return;
    struct cpu *c = cpu_of(vcpu);
    take_sample(c, emulator.started);
    append_record(RECORD_STARTED, c->tid, NULL, 0, NULL);
    tell_end();
}
