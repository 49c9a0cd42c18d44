// Virtual calls, templates, exceptions, lambdas, and initialisers of namespace and thread scope.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
  virtual ~Shape() = default;
  virtual int area(int) const = 0;
};

struct Square : Shape {
  int side;
  explicit Square(int x) : side(x) {}
  int area(int k) const override {
    if (k > 90) throw std::runtime_error("big");
    return side * side + k;
  }
};

struct Circle : Shape {
  int radius;
  explicit Circle(int x) : radius(x) {}
  int area(int k) const override { return 3 * radius * radius - k; }
};

template <int N> struct Power {
  static inline int of(int x) { return x * Power<N - 1>::of(x); }
};
template <> struct Power<0> {
  static inline int of(int) { return 1; }
};

namespace {
int counter;
struct Init {
  Init() { counter = 3; for (int i = 0; i < 4; ++i) counter += i; }
} init;
}  // namespace

static std::string global = std::string("abc") + std::to_string(counter);
thread_local std::vector<int> numbers{1, 2, 3};

template <class F> __attribute__((noinline)) int apply(F f, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += f(i);
  return s;
}

int main(int argc, char **) {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 10; i++) {
    if (i & argc) shapes.push_back(std::make_unique<Square>(i));
    else shapes.push_back(std::make_unique<Circle>(i));
  }
  std::map<int, std::string> words;
  int total = 0;
  for (int i = 0; i < 200; i++) {
    for (auto &s : shapes) try {
      total += s->area(i) + Power<3>::of(i);
    } catch (const std::exception &e) { total -= int(std::string(e.what()).size()); }
    words[i % 17] += global; numbers.push_back(total);
  }
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 7 < b % 7; });
  total += apply([&](int i) { return numbers[i % numbers.size()] > 3 ? i : -i; }, 100) +
           apply([](int i) { return i * 2; }, 10);
  std::printf("%d %zu\n", total, words.size());
  return total & 1;
}
