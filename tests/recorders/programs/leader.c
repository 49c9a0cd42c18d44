// The first thread ends before those that it began: the kernel keeps it as a zombie till then.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *own) {
    volatile unsigned long *sum = own;
    for (unsigned long i = 0; i < 500000; i++)
        *sum += i & 3;
    usleep(1000);
    for (unsigned long i = 0; i < 50000; i++)
        *sum += i & 1;
    printf("%lu\n", *sum);
    return NULL;
}

int main(void) {
    static unsigned long sums[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &sums[i]);
    pthread_exit(NULL);
}
