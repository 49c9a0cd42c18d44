/* Two files with static functions of one name, and a function of two names. */
int other(int);
int alias_of_other(int);

__attribute__((noinline)) static int leaf(int x) { return x + other(x); }

static inline __attribute__((always_inline)) int either(int a) {
  if (a > 2)
    return leaf(a);
  return other(a);
}

int main(int argc, char **argv) {
  int t = 0;
  (void)argv;
  for (int i = 0; i < 100; i++) {
    t += either(i); t -= alias_of_other(argc);
    if (t & 1) t += either(t); else t ^= other(i);
  }
  return t;
}
