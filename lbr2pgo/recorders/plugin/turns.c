#include "turns.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 1 << 12, NOBODY = THREADS_MAX };
enum { TURN = 100000 };                   // instructions
enum { SOON = 50000, LATER = 5000000 };   // nanoseconds between looks
enum { PATIENCE = 1 << 20 };              // looks for a new thread

// ENTERED: in the kernel, or elsewhere outside of the guest; asleep there, or on its way out.
// STARTS: there, until another thread has begun. LEAVES: it ends.
enum state { ABSENT, RUNS, WAITS, ENTERED, STARTS, LEAVES };

static struct {
    atomic_flag lock;
    _Atomic unsigned holder;  // whose turn it is
    unsigned most;            // threads have numbers below
    int64_t left;             // instructions of the turn
    struct {
        enum state state;
        int32_t tid;
        sem_t turn;
    } threads[THREADS_MAX];
} turns = {.lock = ATOMIC_FLAG_INIT, .holder = NOBODY};

int turns_are_taken;

// Who waits for this lock, or for others to settle, must not seem to sleep in the kernel.
static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&turns.lock, memory_order_acquire))
        sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&turns.lock, memory_order_release); }

static void let_others_go_on(void) {
    unlock();
    sched_yield();
    lock();
}

// As /proc tells it (proc(5)): 'S' of a thread that sleeps, 0 of one that is gone.
static char host_state(int32_t tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return 0;
    text[size] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] ? name_end[2] : 0;
}

// Waits until each thread that is in the kernel sleeps there, has come back, or is gone: then it is
// known which ones can run, however fast the host is.
static void settle(void) {
    for (unsigned i = 0; i < turns.most; i++) {
        enum state state = turns.threads[i].state;
        if (state != ENTERED && state != LEAVES)
            continue;
        char host = host_state(turns.threads[i].tid);
        int is_gone = !host || host == 'Z';  // the first thread stays, as long as others live
        if (is_gone)
            turns.threads[i].state = ABSENT;
        if (!is_gone && (state == LEAVES || host != 'S')) {
            let_others_go_on();
            i = -1u;  // it may have woken one that slept
        }
    }
}

// The next thread that waits, NOBODY if none does.
static unsigned next_in_turn(void) {
    unsigned first = turns.holder == NOBODY ? 0 : turns.holder + 1;
    for (unsigned i = 0; i < turns.most; i++)
        if (turns.threads[(first + i) % turns.most].state == WAITS)
            return (first + i) % turns.most;
    return NOBODY;
}

// Who comes next looks often whether it is time.
static void call_next(void) {
    unsigned next = next_in_turn();
    if (next != NOBODY)
        sem_post(&turns.threads[next].turn);
}

static void pass_on(void) {
    unsigned last = turns.holder;
    // It waits for others to leave generated code (QEMU: start_exclusive), and then has to wait.
    if (last != NOBODY && turns.threads[last].state == RUNS)
        turns.threads[last].state = ENTERED;
    settle();
    if (turns.holder != last)
        return;  // another thread has passed it on meanwhile
    if (last != NOBODY && turns.threads[last].state == RUNS)
        return;  // it can go on
    unsigned next = next_in_turn();
    turns.holder = next;
    turns.left = TURN;
    if (next != NOBODY)
        sem_post(&turns.threads[next].turn);
    call_next();
}

// Whether nobody has a turn, or one that it can't use: it waits for another thread, or the world.
static int is_stuck(void) {
    if (turns.holder == NOBODY)
        return 1;
    enum state state = turns.threads[turns.holder].state;
    if (state == STARTS || state == WAITS)  // it was just called
        return 0;
    return host_state(turns.threads[turns.holder].tid) == 'S';
}

static void sleep_until_called(unsigned thread, long nanoseconds) {
    struct timespec until;
    unlock();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    sem_timedwait(&turns.threads[thread].turn, &until);
    lock();
}

static void wait_for_turn(unsigned thread) {
    turns.threads[thread].state = WAITS;
    while (turns.holder != thread) {
        int is_next = next_in_turn() == thread;
        if (is_next && is_stuck())
            pass_on();
        else
            sleep_until_called(thread, is_next ? SOON : LATER);
    }
    turns.threads[thread].state = RUNS;
}

void join_turns(unsigned thread, int32_t tid) {
    thread %= THREADS_MAX;
    lock();
    sem_init(&turns.threads[thread].turn, 0, 0);
    turns.threads[thread].tid = tid;
    turns.threads[thread].state = WAITS;
    turns_are_taken = turns.most > 0;
    if (!turns_are_taken) {
        turns.holder = thread;
        turns.threads[thread].state = RUNS;
    }
    if (turns.most <= thread)
        turns.most = thread + 1;
    unlock();
}

void take_turn(unsigned thread, uint32_t instructions) {
    thread %= THREADS_MAX;
    if (turns.holder == thread && (turns.left -= instructions) > 0)
        return;
    lock();
    if (turns.holder == thread) {
        turns.threads[thread].state = WAITS;
        pass_on();
    }
    wait_for_turn(thread);
    unlock();
}

void turn_enters_kernel(unsigned thread, int starts_thread) {
    lock();
    turns.threads[thread % THREADS_MAX].state = starts_thread ? STARTS : ENTERED;
    unlock();
}

static int has_joined(int32_t tid) {
    for (unsigned i = 0; i < turns.most; i++)
        if (turns.threads[i].tid == tid && turns.threads[i].state != ABSENT)
            return 1;
    return 0;
}

void turn_leaves_kernel(unsigned thread, int32_t new_thread) {
    thread %= THREADS_MAX;
    lock();
    if (turns.holder == thread)
        turns.threads[thread].state = RUNS;
    else
        wait_for_turn(thread);
    for (int looks = 0; new_thread && !has_joined(new_thread) && looks < PATIENCE; looks++)
        let_others_go_on();
    unlock();
}

// It can't wait for itself to be gone: that is up to who comes next.
void leave_turns(unsigned thread) {
    thread %= THREADS_MAX;
    lock();
    turns.threads[thread].state = LEAVES;
    if (turns.holder == thread)
        turns.holder = NOBODY;
    call_next();
    unlock();
}

void turns_before_fork(void) { lock(); }

void turns_after_fork(void) { unlock(); }

void turns_after_fork_in_child(unsigned thread, int32_t tid) {
    thread %= THREADS_MAX;
    for (unsigned i = 0; i < turns.most; i++)
        turns.threads[i].state = ABSENT;
    turns.threads[thread].state = RUNS;
    turns.threads[thread].tid = tid;
    turns.holder = thread;
    turns_are_taken = 0;
    unlock();
}
