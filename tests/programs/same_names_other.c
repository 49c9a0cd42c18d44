static int helper(int x);

__attribute__((noinline)) static int leaf(int x) { return helper(x) + 5; }

static int helper(int x) {
  int s = 0;
  while (x > 3) { s += x & 3; x >>= 1; }
  return s;
}

int other(int x) { return leaf(x) * 2 + helper(x + 7); }

extern int alias_of_other(int) __attribute__((alias("other")));
