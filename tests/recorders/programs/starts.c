// A start that ends in a function, in a child or in a thread where it is told so; and then work
// without end.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int early(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s = s * 31 + (s >> 3 & 1 ? i : n);
    return s;
}

__attribute__((noinline)) int late(int n) { return early(n + 1) + 3; }

__attribute__((noinline)) int never(int n) { return early(n - 1) + 5; }

__attribute__((noinline)) int serve(int n) {
    for (;;)
        n += n == 5 ? never(n) : late(n & 15);
}

static void *in_thread(void *n) { return (void *)(long)serve(*(int *)n); }

int main(int argc, char **argv) {
    int n = 7 + early(argc), status;
    pthread_t thread;
    if (argc > 1 && *argv[1] == 'f' && fork())
        return wait(&status);
    if (argc > 1 && *argv[1] == 'e')
        execl(argv[0], argv[0], NULL);
    if (argc > 1 && *argv[1] == 't')
        return pthread_create(&thread, NULL, in_thread, &n) || pthread_join(thread, NULL);
    return argc > 1 && *argv[1] == 'x' ? early(n) & 1 : serve(n);
}
