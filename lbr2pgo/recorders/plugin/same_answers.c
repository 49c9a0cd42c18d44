#include "same_answers.h"

#include <unistd.h>

#include "emulator.h"
#include "guest_memory.h"
#include "options.h"
#include "process.h"
#include "records.h"
#include "stream.h"
#include "turns.h"

static int waits_for_the_world(int64_t number) {
    const struct numbers *n = &emulator.architecture->numbers;
    return number == n->nanosleep || number == n->clock_nanosleep || number == n->ppoll ||
           number == n->epoll_pwait || (n->poll && number == n->poll) ||
           (n->epoll_wait && number == n->epoll_wait);
}

static enum note note_of(int64_t number) {
    const struct numbers *numbers = &emulator.architecture->numbers;
    if (numbers->time && number == numbers->time)  // which tells it in a register
        return NOTE_TOLD_TIME;
    if (number == numbers->getpid || number == numbers->gettid)
        return NOTE_TOLD_PROCESS;
    if (number == numbers->socket)
        return NOTE_TOLD_BY_NETWORK;
    if (turns_are_taken && waits_for_the_world(number))
        return NOTE_THREADS_WAIT;
    return 0;
}

void note_what_differs(int64_t number, int32_t tid) {
    static pid_t process;
    static uint32_t noted;
    enum note note = note_of(number);
    if (process != getpid()) {
        process = getpid();
        noted = 0;
    }
    if (note && !(noted & 1u << note))
        append_note(note, 0, tid, NULL);
    noted |= note ? 1u << note : 0;
}

// Source: Vigna, splitmix64.
static uint64_t next_number(void) {
    static uint64_t state;
    uint64_t number = (state += 0x9e3779b97f4a7c15) ^ options.seed;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

static void write_random(uint64_t address, uint64_t size) {
    for (uint64_t done = 0; done < size; done += sizeof(uint64_t)) {
        uint64_t number = next_number(), left = size - done;
        write_guest(address + done, &number, left < sizeof number ? left : sizeof number);
    }
}

// An instruction takes a nanosecond. It begins when a thread first asks: how long the loader worked
// before depends on the lengths of paths.
static void write_time(const struct cpu *c, uint64_t address, uint64_t unit) {
    enum { SECOND = 1000000000 };
    static __thread pid_t process;
    static __thread uint64_t begun;
    if (process != getpid()) {
        process = getpid();
        begun = c->totals->instructions;
    }
    uint64_t passed = c->totals->instructions - begun;
    uint64_t time[2] = {SECOND + passed / SECOND, passed % SECOND / unit};
    write_guest(address, time, sizeof time);
}

void answer_alike(const struct cpu *c, int64_t number, int64_t result) {
    const struct numbers *numbers = &emulator.architecture->numbers;
    if (number == numbers->getrandom)
        write_random(c->call[0], (uint64_t)result);
    else if (number == numbers->clock_gettime)
        write_time(c, c->call[1], 1);
    else if (number == numbers->gettimeofday && c->call[0])
        write_time(c, c->call[0], 1000);
}
