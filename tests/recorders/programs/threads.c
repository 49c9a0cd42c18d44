// Four threads in the same loop, then four more that take the places of those that ended.
#include <pthread.h>
#include <stddef.h>

#include "counted.h"

__attribute__((noinline)) static void work(void) { COUNTED_LOOP(in_thread, 100000); }

static void *start(void *unused) {
    work();
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int wave = 0; wave < 2; wave++) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, start, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}
