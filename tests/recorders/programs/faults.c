// Leaves the handlers of faults by siglongjmp, more often than handlers can nest.
#include <setjmp.h>
#include <signal.h>

#include "counted.h"

static sigjmp_buf back;

static void on_fault(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

int main(void) {
    signal(SIGILL, on_fault);
    signal(SIGTRAP, on_fault);
    signal(SIGSEGV, on_fault);
    for (volatile int i = 0; i < 200; i++) {
        if (!sigsetjmp(back, 1)) {
            COUNTED_LOOP(before_fault, 10);
            if (i % 2)
                __builtin_trap();
            *(volatile int *)0 = 1;
        }
        COUNTED_LOOP(after_fault, 100);
    }
    return 0;
}
