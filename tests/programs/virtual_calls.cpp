// Calls of virtual methods, whose virtual tables the caller decides on; without any library.

struct Base {
  virtual int f(int) { return 0; }
};
struct One : Base {
  int f(int x) override { return x + 1; }
};
struct Two : Base {
  int f(int x) override { return x * 3; }
};
struct Three : Two {
  int f(int x) override { return x ^ 5; }
};

__attribute__((noinline)) int call(Base *base, int x) {
  return base->f(x) + 1;
}
__attribute__((noinline)) int ones(Base *base, int x) { return call(base, x) + 2; }
__attribute__((noinline)) int twos(Base *base, int x) { return call(base, x) + 3; }
__attribute__((noinline)) int tail(Base *base, int x) { return base->f(x); }
__attribute__((always_inline)) inline int both(Base *a, Base *b, int x) {
  return a->f(x) + b->f(x);
}

// Looks into a virtual table, and calls nobody.
__attribute__((always_inline)) inline void *method(Base *base) { return **(void ***)base; }
void *volatile seen;
__attribute__((noinline)) bool look(Base *base) {
  if (!base)
    return false;
  seen = method(base);
  return true;
}

One one;
Two two;
Three three;

int main(int arguments, char **) {
  if (arguments > 1)
    return twos(&two, 1) == 7;
  Base *all[4] = {&one, &two, &one, &three};
  int sum = 0;
  for (int i = 0; i < 800; i++) {
    sum += call(all[i & 3], i);
    sum += both(all[i & 1], all[3], i);
    sum += ones(&one, i);
    sum += twos(&two, i);
    sum += tail(all[i & 1], i);
    // Twice, so that what is inlined there is among the hot contexts of every recording.
    for (int twice = arguments; twice <= 2; twice++)
      sum += look(all[i & 3]);
  }
  return sum == 7;
}
