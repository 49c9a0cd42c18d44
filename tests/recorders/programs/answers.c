/* Does as much work as it is told by random numbers, clocks, addresses and its environment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

extern char **environ;

__attribute__((noinline)) static unsigned work(uint64_t n) {
    unsigned s = 0;
    for (uint64_t i = 0; i < n % 4099; i++)
        s = s * 31 + (s & 8 ? i : 7);
    return s;
}

int main(int argc, char **argv) {
    uint64_t random, sum = 0;
    struct timespec first, second;
    struct timeval day;
    clock_gettime(CLOCK_MONOTONIC, &first);
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return 1;
    for (char **each = environ; *each; each++)
        sum += work((*each)[0]);
    sum += work(random) + work((uintptr_t)&day >> 4) + work((uintptr_t)malloc(100) >> 4);
    sum += work((uintptr_t)main >> 12);
    clock_gettime(CLOCK_REALTIME, &second);
    gettimeofday(&day, NULL);
    sum += work((uint64_t)(second.tv_nsec - first.tv_nsec)) + work((uint64_t)day.tv_usec);
    printf("%llu\n", (unsigned long long)sum);
    return argc > 1 && time(NULL) == 0;
}
