#include "execution.h"

#include "calls.h"
#include "emulator.h"
#include "flow.h"
#include "process.h"
#include "ring.h"
#include "stream.h"
#include "turns.h"

static void run_in_turn(const struct cpu *c, const struct block *b) {
    if (__builtin_expect(turns_are_taken, 0))
        take_turn(c->index, b->instructions);
}

void block_begins(unsigned vcpu, void *data) {
    struct cpu *c = cpu_of(vcpu);
    run_in_turn(c, data);
    enter_block(c, data);
}

// `state` is the emulator's of the processor, its CPUArchState.
__attribute__((used)) static void block_begins_in_state(unsigned vcpu, void *data, const void *state) {
    struct cpu *c = cpu_of(vcpu);
    run_in_turn(c, data);
    if (c->calls)
        look_at_stack(c, state, data);
    enter_block(c, data);
}

// Generated code keeps the state in a register (QEMU: TCG_AREG0 in tcg/*/tcg-target.h), and at the
// beginning of a block all of the guest's registers are in it. Versions before 9 have no other way
// to a register, and later ones look each up by its name.
#if defined(__x86_64__)
#define PASS_STATE "movq %rbp, %rdx\n jmp block_begins_in_state\n"
#elif defined(__aarch64__)
#define PASS_STATE "mov x2, x19\n b block_begins_in_state\n"
#endif

#ifdef PASS_STATE
__asm__(".pushsection .text\n"
        ".globl block_begins_with_calls\n"
        ".hidden block_begins_with_calls\n"
        "block_begins_with_calls:\n" PASS_STATE ".popsection\n");
#else
void block_begins_with_calls(unsigned vcpu, void *data) {
    block_begins_in_state(vcpu, data, NULL);
}
#endif

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
