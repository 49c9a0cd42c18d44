// Closes every descriptor in three ways and hands wrong pointers to the kernel.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counted.h"

int main(void) {
    for (int i = 3; i < 2000; i++)
        close(i);
    COUNTED_LOOP(after_close, 10000);
    int null = open("/dev/null", O_RDONLY);
    for (int i = null + 1; i < 1100; i++)
        dup2(null, i);
    COUNTED_LOOP(after_dup, 10000);
    syscall(SYS_close_range, 3, ~0u, 0);
    COUNTED_LOOP(after_close_range, 10000);
    syscall(SYS_rt_sigaction, SIGUSR1, 8, 0, 8);
    syscall(SYS_execve, 8, 8, 8);
    syscall(SYS_execve, "/bin/true", 8, 8);
    syscall(SYS_execve, "/nonexistent", 0, 0);
    COUNTED_LOOP(after_wrong_pointers, 10000);
    return 0;
}
