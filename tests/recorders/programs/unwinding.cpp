// Exceptions through several frames, caught twice, and a coroutine that switches stacks by hand.

#include <cstdio>
#include <stdexcept>

static volatile unsigned total;

#define NOINLINE __attribute__((noinline, noclone))
#define WORK(name)                                                                                 \
    extern "C" NOINLINE void work_##name() {                                                       \
        for (unsigned i = 0; i < 300; i++)                                                         \
            if (total & i)                                                                         \
                total = total + 3;                                                                 \
            else                                                                                   \
                total = total + i;                                                                 \
    }

WORK(thrown) WORK(cleaned) WORK(caught) WORK(rethrown) WORK(switched) WORK(back)

struct Cleanup {
    ~Cleanup() { work_cleaned(); }
};

extern "C" NOINLINE void throws(int depth) {
    if (depth == 0) {
        work_thrown();
        throw std::runtime_error("deep");
    }
    throws(depth - 1);
    total = total + 1;
}

extern "C" NOINLINE void cleans() {
    Cleanup cleanup;
    throws(4);
}

extern "C" NOINLINE void catches() {
    try {
        cleans();
    } catch (const std::runtime_error &) {
        work_caught();
        throw;
    }
}

extern "C" NOINLINE void catches_again() {
    try {
        catches();
    } catch (...) {
        work_rethrown();
    }
    total = total + 1;
}

// Leaves its stack pointer in `*from` and goes on where `to` was left: by a return.
extern "C" void switch_stack(void **from, void *to);
__asm__("switch_stack: push %rbp; push %rbx; mov %rsp, (%rdi); mov %rsi, %rsp; pop %rbx; pop %rbp; ret");

static void *home, *away;
static unsigned long fiber_stack[4096] __attribute__((aligned(16)));

extern "C" NOINLINE void fiber() {
    for (;;) {
        work_switched();
        switch_stack(&away, home);
    }
}

extern "C" NOINLINE void switches() {
    switch_stack(&home, away);
    work_back();
    total = total + 1;
}

int main() {
    fiber_stack[4092] = reinterpret_cast<unsigned long>(fiber);
    away = &fiber_stack[4090];  // two registers below
    for (int i = 0; i < 50; i++) {
        catches_again();
        switches();
    }
    std::printf("%u\n", total);
}
