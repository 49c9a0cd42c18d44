#include "inlining.h"

// The same in both files, so that a linker may fold them.
static __attribute__((noinline)) int twin(int x) { return middle(x) - leaf(x + 5); }

static int local(int x) {
  switch (x & 7) {
    case 0: return 4;
    case 1: return x + 9;
    case 2: return middle(x);
    case 5: return x * 7;
    default: return Step<4>::run(x);
  }
}

int entry(int n, Shape* shape);
int folded_a(int x) { return middle(x) * 5 + leaf(x); }
int folded_b(int y) { return middle(y) * 5 + leaf(y); }
int helper(int x) { return local(x) + middle(x + 1) + folded_a(x) + folded_b(x) + twin(x); }
int dropped_too(int x) { return middle(x) * 2; }

int main(int argc, char**) {
  Shape shape;
  return entry(argc * 50, &shape) & 1;
}
