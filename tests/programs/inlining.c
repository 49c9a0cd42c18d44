/* Inlining at several depths on one line, loops that unroll or vectorise, a jump table, recursion,
   calls through a table, and a cold path. */
#include <stdlib.h>

__attribute__((noinline)) static int leaf(int x) { return x * 3 + 1; }

static inline int small(int x) {
  if (x & 1)
    return leaf(x);
  return x >> 1;
}

static inline int deeper(int x) {
  int s = 0;
  for (int i = 0; i < 3; i++) s += small(x + i);
  return s;
}

__attribute__((noinline)) int sum(const int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += p[i];
  return s;
}

__attribute__((noinline)) int saturate(int *p, int n) {
  int below = 0;
  for (int i = 0; i < n; i++) { p[i] = p[i] > 10 ? 10 : p[i]; if (p[i] < 0) below++; }
  return below;
}

__attribute__((noinline)) int choose(int x) {
  switch (x) {
  case 0: return leaf(3);
  case 1: return 9;
  case 2: return deeper(x);
  case 3: return 17;
  case 4: return 3;
  case 5: return small(1);
  default: return -1;
  }
}

__attribute__((noinline)) int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

typedef int (*function)(int);
static function table[] = {leaf, choose, fibonacci};

__attribute__((cold, noinline)) static void fail(int x) {
  if (x) abort();
  exit(x);
}

#define TWICE(x) (small(x) + small((x) + 1) + (x > 4 ? deeper(x) : small(x - 1)))

int main(int argc, char **argv) {
  int a[64], t = 0;
  (void)argv;
  for (int i = 0; i < 64; i++) a[i] = i * argc;
  for (int r = 0; r < 1000; r++) {
    t += TWICE(r); t += sum(a, 64) + saturate(a, 64);
    if (r % 7 == 0) t += table[r % 3](r % 9);
    if (t == 123456) fail(t);
  }
  return t & 1;
}
