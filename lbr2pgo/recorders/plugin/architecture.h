// All that differs between processors: one record each, in a module of its own. A new one is also
// named in architecture.c.

#ifndef LBR_ARCHITECTURE_H
#define LBR_ARCHITECTURE_H

#include <stddef.h>
#include <stdint.h>

// Kinds that Linux also knows have Linux's numbers (PERF_BR_*, include/uapi/linux/perf_event.h).
enum kind {
    KIND_OTHER = 0,
    KIND_COND = 1,
    KIND_UNCOND = 2,
    KIND_IND = 3,
    KIND_CALL = 4,
    KIND_IND_CALL = 5,
    KIND_RET = 6,
    KIND_SYSCALL = 7,
    KIND_ERET = 11,
    KIND_REPEAT = 16,  // a repeated string instruction: QEMU runs it as a loop over itself
    KIND_TRAP = 17,
};

struct decoded {
    enum kind kind;
    uint64_t target;  // of direct branches
};

// Numbers of the system calls that change what the recorder must know.
struct numbers {
    int64_t mmap, munmap, mprotect, pkey_mprotect, mremap;
    int64_t rt_sigaction, rt_sigreturn;
    int64_t clone, execve, execveat, exit, exit_group, prctl;
    int64_t close, close_range, dup2, dup3;  // 0: does not exist
    // What the guest is told by these differs from run to run.
    int64_t clock_gettime, gettimeofday, time, getrandom, getpid, gettid, socket;
    // Moments at which these end do, too.
    int64_t nanosleep, clock_nanosleep, poll, ppoll, epoll_wait, epoll_pwait;
};

// Of architectures without a table of their own (Linux: include/uapi/asm-generic/unistd.h).
#define GENERIC_NUMBERS {                                                             \
    .mmap = 222, .munmap = 215, .mprotect = 226, .pkey_mprotect = 288, .mremap = 216, \
    .rt_sigaction = 134, .rt_sigreturn = 139,                                         \
    .clone = 220, .execve = 221, .execveat = 281, .exit = 93, .exit_group = 94, .prctl = 167,       \
    .close = 57, .close_range = 436, .dup3 = 24,                                      \
    .nanosleep = 101, .clock_nanosleep = 115, .ppoll = 73, .epoll_pwait = 22,         \
    .clock_gettime = 113, .gettimeofday = 169, .getpid = 172, .gettid = 178,          \
    .getrandom = 278, .socket = 198,                                                  \
}

enum { ON_STACK = -1 };

struct architecture {
    uint16_t machine;  // EM_*

    // What an instruction at an address does to the program counter.
    struct decoded (*decode)(uint64_t address, const uint8_t *bytes, size_t size);

    struct numbers numbers;

    // Offsets of 64-bit registers in what QEMU calls CPUArchState.
    size_t stack_pointer;
    int return_address;  // ON_STACK where calls push it

    // What a call adds to the stack pointer that its return takes away.
    uint64_t pushed_by_call;

    // Offsets in the frame of a signal.
    size_t signal_stack_pointer, signal_instruction;
};

extern const struct architecture x86_64, aarch64, riscv64;

// The record of an ELF machine, NULL if it has none.
const struct architecture *architecture_of(uint64_t machine);

// A signed number of so many bytes, or of so many bits; those above are ignored.
int64_t little_endian(const uint8_t *bytes, size_t size);
int64_t sign_extend(uint64_t value, unsigned bits);

#endif
