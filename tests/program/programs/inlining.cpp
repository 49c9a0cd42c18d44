#include "inlining.h"

namespace {
struct Square : Shape {
  int side;
  explicit Square(int side) : side(side) {}
  int area(int k) const override { return side * side + middle(k); }
};
}  // namespace

// The same in both files, so that a linker may fold them.
static __attribute__((noinline)) int twin(int x) { return middle(x) - leaf(x + 5); }

static int local(int x) { return x > 10 ? leaf(x) * 2 : middle(x - 1); }

template <typename T, typename Less> void sort(T* first, T* last, Less less) {
  for (T* i = first; i < last; i++)
    for (T* j = i; j > first && less(*j, j[-1]); j--) {
      T held = *j;
      *j = j[-1];
      j[-1] = held;
    }
}

int helper(int x);

__attribute__((noinline)) int cold_or_not(int x) {
  if (__builtin_expect(x == 7, 0)) return Step<2>::run(helper(x));
  return local(x) + middle(x) + twin(x);
}

int entry(int n, Shape* shape) {
  int values[64];
  Square square(n);
  for (int i = 0; i < 64; i++)
    values[i] = Step<9>::run(i) + helper(i) + (i & 1 ? shape->area(i) : square.area(i));
  sort(values, values + 64, [](int a, int b) { return a % 17 < b % 17; });
  int result = 0;
  for (int i = 0; i < 64; i++) result += cold_or_not(values[i] & 15);
  return result;
}

int dropped(int x) { return middle(x) + local(x); }
