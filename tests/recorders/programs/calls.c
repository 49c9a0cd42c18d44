// Calls and everything that leaves them otherwise than by a return. What runs for long are the
// functions `work_…`: a test knows who called each.

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned total;
static jmp_buf jump;
static sigjmp_buf signal_jump;

#define WORK(name)                                                                                 \
    NOINLINE void work_##name(void) {                                                              \
        for (unsigned i = 0; i < 300; i++)                                                         \
            if (total & i)                                                                         \
                total += 3;                                                                        \
            else                                                                                   \
                total += i;                                                                        \
    }

WORK(plain) WORK(after_jump) WORK(in_handler) WORK(after_handler) WORK(in_coroutine)
WORK(beside_coroutine) WORK(tail) WORK(deep) WORK(after_deep) WORK(after_signal_jump)
WORK(pointed) WORK(before_jump)

NOINLINE void plain(void) {
    work_plain();
    total++;
}

NOINLINE void leap(int depth) {
    if (depth)
        leap(depth - 1);
    else
        work_before_jump();
    total++;
    longjmp(jump, 1);
}

NOINLINE void jumps(void) {
    if (!setjmp(jump))
        leap(5);
    work_after_jump();
    total++;
}

NOINLINE void handler(int number) {
    work_in_handler();
    total += (unsigned)number;
}

NOINLINE void leaping_handler(int number) {
    total += (unsigned)number;
    siglongjmp(signal_jump, 1);
}

NOINLINE void signals(void) {
    signal(SIGUSR1, handler);
    signal(SIGUSR2, leaping_handler);
    raise(SIGUSR1);
    work_after_handler();
    if (!sigsetjmp(signal_jump, 1))
        raise(SIGUSR2);
    work_after_signal_jump();
    total++;
}

enum { COROUTINES = 3 };
static ucontext_t home, contexts[COROUTINES];

NOINLINE void body(int number) {
    for (;;) {
        work_in_coroutine();
        swapcontext(&contexts[number], number + 1 < COROUTINES ? &contexts[number + 1] : &home);
    }
}

NOINLINE void coroutines(void) {
    static int started;
    for (; started < COROUTINES; started++) {
        enum { SIZE = 1 << 16 };
        getcontext(&contexts[started]);
        contexts[started].uc_stack.ss_sp = malloc(SIZE);
        contexts[started].uc_stack.ss_size = SIZE;
        makecontext(&contexts[started], (void (*)(void))body, 1, started);
    }
    swapcontext(&home, &contexts[0]);
    work_beside_coroutine();
    total++;
}

NOINLINE void tail(void) { work_tail(); }

NOINLINE void tails(void) {
    tail();
    total++;
}

NOINLINE void dive(int depth) {
    if (depth)
        dive(depth - 1);
    else
        work_deep();
    total++;
}

NOINLINE void dives(void) {
    dive(10000);
    work_after_deep();
    total++;
}

NOINLINE void points(void (*volatile work)(void)) {
    work();
    total++;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    for (int i = 0; i < rounds; i++) {
        plain();
        jumps();
        signals();
        coroutines();
        tails();
        dives();
        points(work_pointed);
    }
    printf("%u\n", total);
    return 0;
}
