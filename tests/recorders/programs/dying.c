// Loops, then crashes; or with an argument announces itself and loops until it is killed.
#include <stdio.h>

#include "counted.h"

int main(int argc, char **argv) {
    (void)argv;
    COUNTED_LOOP(before_end, 200000);
    if (argc == 1)
        *(volatile int *)0 = 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        COUNTED_LOOP(for_ever, 1000);
}
