// Calls nested as deep as the first argument says, as often as the second one does. Neighbours
// return to three places in turn, which no power of two brings round.
#include <stdlib.h>

#define CALLS(name, next)                                                                          \
    __attribute__((noinline)) int name(int depth) {                                                \
        return depth > 1 ? next(depth - 1) + depth : 1;                                            \
    }

int third(int depth);
CALLS(second, third)
CALLS(first, second)
CALLS(third, first)

int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; argc > 2 && i < atoi(argv[2]); i++)
        sum ^= first(atoi(argv[1]));
    return sum & 1;
}
