// A loop under a storm of timer signals, a fault that its handler repairs, and a handler that is
// also called like any function. Prints how often the handlers ran.
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "counted.h"

static volatile sig_atomic_t alarms, faults, calls;
static char *page;

static void on_alarm(int signal) {
    (void)signal;
    alarms++;
    COUNTED_LOOP(in_handler, 10);
}

static void on_fault(int signal) {
    (void)signal;
    faults++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int main(void) {
    struct itimerval often = {{0, 500}, {0, 500}};
    void (*volatile handler)(int) = on_alarm;
    signal(SIGALRM, on_alarm);
    signal(SIGSEGV, on_fault);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 7; i++) {
        handler(0);
        calls++;
    }
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20; i++) {
        mprotect(page, 4096, PROT_NONE);
        page[i] = (char)i;
        COUNTED_LOOP(in_main, 500000);
        COUNTED_CALLS(indirect_call, 500000);
    }
    often = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    printf("%d %d %d\n", (int)alarms, (int)faults, (int)calls);
    return 0;
}
