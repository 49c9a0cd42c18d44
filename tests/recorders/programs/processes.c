// The parent loops, forks a child that loops and executes this program again (by way of a script if
// one is named), which loops too.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counted.h"

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[argc - 1], "again")) {
        COUNTED_LOOP(after_exec, 30000);
        return 7;
    }
    COUNTED_LOOP(in_parent, 10000);
    if (fork() == 0) {
        COUNTED_LOOP(in_child, 20000);
        const char *program = argc > 1 ? argv[1] : argv[0];
        execl(program, program, "x", "again", (char *)NULL);
        _exit(99);
    }
    int status;
    wait(&status);
    COUNTED_LOOP(in_parent_later, 40000);
    return WEXITSTATUS(status);
}
