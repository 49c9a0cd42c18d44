#include "system_calls.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"
#include "emulator.h"
#include "exec.h"
#include "guest_memory.h"
#include "maps.h"
#include "options.h"
#include "process.h"
#include "same_answers.h"
#include "stream.h"
#include "turns.h"

static int starts_thread(const struct cpu *c, int64_t number) {
    enum { CLONE_THREAD = 0x10000 };
    return number == emulator.architecture->numbers.clone && c->call[0] & CLONE_THREAD;
}

static void end_thread(struct cpu *c) {
    unsigned index = c->index;
    stop_cpu(c);
    if (options.alike)
        leave_turns(index);
}

void before_call(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                 uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id;
    const struct numbers *numbers = &emulator.architecture->numbers;
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    if (!c)
        return;
    uint64_t handler;  // the first member of the kernel's struct sigaction
    memcpy(c->call, (uint64_t[8]){a1, a2, a3, a4, a5, a6, a7, a8}, sizeof c->call);
    if (options.alike)
        turn_enters_kernel(c->index, starts_thread(c, number));
    if (number == numbers->rt_sigreturn)
        c->returning = 1;
    else if (number == numbers->rt_sigaction && a2 && read_guest(a2, &handler, sizeof handler))
        set_handler(a1, handler);
    else if (number == numbers->execve && options.exec)
        follow_exec(&emulator, AT_FDCWD, a1, a2, a3, c->tid);
    else if (number == numbers->execveat && options.exec)
        follow_exec(&emulator, (int32_t)a1, a2, a3, a4, c->tid);
    else if (number == numbers->close)
        keep_stream_open((int32_t)a1);
    else if (number == numbers->dup3 || (numbers->dup2 && number == numbers->dup2))
        keep_stream_open((int32_t)a2);
    else if (number == numbers->exit)
        end_thread(c);
    else if (number == numbers->exit_group)
        append_record(RECORD_EXIT, getpid(), NULL, 0, NULL);
    else if (options.alike)
        note_what_differs(number, c->tid);
}

static void mapped(const struct cpu *c, uint64_t address) {
    enum { PROT_EXECUTABLE = 4, ANONYMOUS = 0x20 };
    int executable = (c->call[2] & PROT_EXECUTABLE) != 0;
    int anonymous = (c->call[3] & ANONYMOUS) != 0;
    struct region region = {address, page_up(address + c->call[1]), 0, "//anon", 0};
    if (!anonymous) {
        region.path = path_of_descriptor((int)c->call[4]);
        region.offset = c->call[5];
    }
    map_range(region, executable, c->tid);
}

static void map_call_returned(const struct cpu *c, int64_t number, uint64_t result) {
    const struct numbers *numbers = &emulator.architecture->numbers;
    const uint64_t *a = c->call;
    lock_maps();
    if (number == numbers->mmap)
        mapped(c, result);
    else if (number == numbers->munmap)
        remove_range(a[0], page_up(a[0] + a[1]));
    else if (number == numbers->mprotect || number == numbers->pkey_mprotect)
        protect_range(a[0], page_up(a[0] + a[1]), (a[2] & 4) != 0, c->tid);
    else if (number == numbers->mremap)
        move_range(a[0], page_up(a[1]), result, page_up(a[2]), c->tid);
    unlock_maps();
}

void after_call(uint64_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    enum { ERRORS = 4095, SET_NAME = 15 };
    const struct numbers *numbers = &emulator.architecture->numbers;
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    if (!c)
        return;
    int failed = result < 0 && result >= -ERRORS;
    if (options.alike)
        turn_leaves_kernel(c->index, !failed && starts_thread(c, number) ? (int32_t)result : 0);
    if (failed)
        return;
    map_call_returned(c, number, (uint64_t)result);
    if (options.alike)
        answer_alike(c, number, result);
    if (number == numbers->close_range)
        reopen_stream(c->call[0], c->call[1]);
    if (number == numbers->prctl && c->call[0] == SET_NAME)
        append_name(c->tid, (const char *)(uintptr_t)(guest_base + c->call[1]), 0);
}
