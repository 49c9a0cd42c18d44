// Threads that take work from each other: how much each does depends on their turns. With an
// argument they sleep, too.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS = 4, PIECES = 400, ROOM = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], first, count, is_over;
static atomic_int next_piece;
static unsigned long sums[THREADS][2];

__attribute__((noinline)) static unsigned long work(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n % 997; i++)
        sum = sum * 31 + (i ^ n);
    return sum;
}

static int sleeps;

static void *take(void *own) {
    unsigned long *sum = own;
    if (sleeps)
        usleep(1000);
    for (;;) {  // from a counter that all share
        int piece = atomic_fetch_add(&next_piece, 1);
        if (piece >= PIECES)
            break;
        *sum += work((unsigned long)piece * 7919) + 1;
    }
    for (;;) {  // from a queue
        pthread_mutex_lock(&lock);
        while (!count && !is_over)
            pthread_cond_wait(&filled, &lock);
        if (!count) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
        int piece = queue[first++ % ROOM];
        count--;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
        sum[1] += work((unsigned long)piece * 104729) % 7 + 1;
        if (piece % 5 == 0)
            sched_yield();
    }
}

int main(int argc, char **argv) {
    (void)argv;
    sleeps = argc > 1;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take, sums[i]);
    for (int piece = 0; piece < PIECES; piece++) {
        pthread_mutex_lock(&lock);
        while (count == ROOM)
            pthread_cond_wait(&emptied, &lock);
        queue[(first + count++) % ROOM] = piece;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        printf("%lu %lu\n", sums[i][0], sums[i][1]);
    return 0;
}
