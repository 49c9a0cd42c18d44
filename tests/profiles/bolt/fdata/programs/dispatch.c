/* Control flow that BOLT cuts into blocks in different ways. Run by nobody: only its code counts. */
#include <stdio.h>
#include <stdlib.h>

volatile int sink;

int other(int x);

__attribute__((noinline)) int dense(int x, int y) {
  switch (x) {
  case 0: return y * 3;
  case 1: sink++; return y + 7;
  case 2: return y ^ 99;
  case 3: sink = y; return sink * 2;
  case 4: return y - 1;
  case 5: sink += 3; return y / 3;
  case 6: return y << 2;
  case 7: return y >> 1;
  case 8: abort();
  }
  __builtin_unreachable();
}

__attribute__((noinline)) int looped(int x, int y) {
  int r = 0;
  for (int i = 0; i < y; i++) {
    switch ((x + i) % 13) {
    case 0: r += y * 3; break;
    case 1: sink++; r += y + 7; break;
    case 2: r ^= y ^ 99; break;
    case 3: sink = y; r += sink * 2; break;
    case 5: sink += 3; r += y / 3; break;
    case 6: r = r + (y << 2); break;
    case 7: r += y >> 1; /* falls through */
    default: r++; if (r > 1000) goto out;
    }
  }
out:
  return r;
}

__attribute__((noinline)) int threaded(const unsigned char *p) {
  static const void *const table[] = {&&add, &&triple, &&flip, &&done};
  int acc = 0;
  goto *table[*p++];
add: acc += 1; goto *table[*p++];
triple: acc *= 3; goto *table[*p++];
flip: acc ^= 5; if (acc & 1) sink++; goto *table[*p++];
done: return acc;
}

__attribute__((noinline)) int recursive(int n) {
  return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

static __attribute__((noinline)) int same_name(int x) {
  if (x > 3) return sink + x;
  sink = x;
  return x * 2;
}

__attribute__((noinline)) int tail_call(int x) {
  if (x & 1) return other(x);
  sink++;
  return recursive(x);
}

__attribute__((noinline)) int rare_tail_call(int x) {
  if (__builtin_expect(x > 5, 0)) return other(x + 1);
  sink += x;
  return x;
}

__attribute__((noinline)) int aliased(int x) { return x * 31 + sink; }
int alias(int) __attribute__((alias("aliased")));
__attribute__((noinline)) int identical(int x) { return x * 31 + sink; }

__attribute__((noinline)) int with_cold_part(int x) {
  if (__builtin_expect(x > 1000000, 0)) {
    printf("large %d\n", x);
    sink++;
    for (int i = 0; i < x; i++) sink ^= i * x;
    if (sink == 3) abort();
  }
  for (int i = 0; i < (x & 7); i++) sink += same_name(i);
  return sink;
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
  int a[100];
  for (int i = 0; i < 100; i++) a[i] = rand() % 1000;
  qsort(a, 100, sizeof *a, compare);
  unsigned char program[] = {0, 1, 2, 1, 2, 0, 3};
  int r = threaded(program) + recursive(12);
  for (int i = 0; i < 100; i++) {
    r += dense(a[i] % 8, i) + looped(a[i], i) + same_name(i) + tail_call(i % 10);
    r += rare_tail_call(i % 9) + aliased(i) + alias(i) + identical(i) + with_cold_part(i);
  }
  printf("%d\n", r);
  return 0;
}
