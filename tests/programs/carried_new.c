#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline))
static volatile unsigned sink;

KEEP unsigned same(unsigned x) {
  unsigned sum = 0;
  for (unsigned i = 0; i < x % 7; i++)
    sum += i & 1 ? i * x : i ^ x;
  return sum;
}

KEEP unsigned grown(unsigned x) {
  unsigned found = 0;
  if (x == 0xffffffff)
    abort();
  while (x > 9) {
    if (x % 1000 == 7)
      puts("seven");
    if (x % 3 == 0)
      found += same(x);
    else
      found ^= x << 3;
    x /= 2;
  }
  return found;
}

KEEP unsigned after(unsigned x) {
  unsigned bits = 0;
  for (; x; x &= x - 1)
    bits++;
  if (bits > 12)
    bits += same(bits);
  else if (bits == 5)
    sink = 17;
  return bits * 0x1234567;
}

KEEP static unsigned typed(unsigned x, long y) {
  if (y > 1000000)
    return 4;
  if (x % 5 == 2)
    return same(x + 1);
  for (int i = 0; i < 3; i++)
    sink = x + i;
  return x % 11 ? 3 : same(x);
}

KEEP unsigned piece(unsigned total) {
    for (unsigned k = total; k > 77; k /= 3) {
      if (k % 4 == 1)
        total ^= after(k) + 0x5151;
      else if (k % 4 == 2)
        total -= same(k ^ 0x7e7e);
      else
        total += 0x3333;
    }
    while (total % 9)
      total -= 5;
  return total;
}

KEEP unsigned whole(unsigned x) {
  unsigned total = 0;
  for (unsigned i = 0; i < x % 5; i++)
    total += grown(i + x);
  if (total % 1000 > 400) {
    total = piece(total);
  }
  return total;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 100, x = 12345;
  for (unsigned i = 0; i < rounds; i++) {
    x = x * 1103515245 + 12345;
    sink += grown(x) + after(x) + typed(x, rounds) + whole(x >> 8);
  }
  printf("%u\n", sink);
  return 0;
}
