// Numbers of the system calls that change what the recorder must know (Linux:
// arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h).

#ifndef LBR_SYSCALLS_H
#define LBR_SYSCALLS_H

#include <stdint.h>

struct numbers {
    int64_t mmap, munmap, mprotect, pkey_mprotect, mremap;
    int64_t rt_sigaction, rt_sigreturn;
    int64_t execve, execveat, exit, exit_group, prctl;
    int64_t close, close_range, dup2, dup3;  // 0: does not exist
};

static const struct numbers x86_64_numbers = {
    .mmap = 9, .munmap = 11, .mprotect = 10, .pkey_mprotect = 329, .mremap = 25,
    .rt_sigaction = 13, .rt_sigreturn = 15,
    .execve = 59, .execveat = 322, .exit = 60, .exit_group = 231, .prctl = 157,
    .close = 3, .close_range = 436, .dup2 = 33, .dup3 = 292,
};

static const struct numbers aarch64_numbers = {
    .mmap = 222, .munmap = 215, .mprotect = 226, .pkey_mprotect = 288, .mremap = 216,
    .rt_sigaction = 134, .rt_sigreturn = 139,
    .execve = 221, .execveat = 281, .exit = 93, .exit_group = 94, .prctl = 167,
    .close = 57, .close_range = 436, .dup3 = 24,
};

#endif
