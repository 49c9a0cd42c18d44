// Landing pads, virtual calls, and templates that make identical functions.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Base {
  virtual int value(int) = 0;
  virtual ~Base() {}
};
struct Throws : Base {
  int value(int x) override {
    if (x % 7 == 0) throw std::runtime_error("seven");
    return x + 1;
  }
};
struct ThrowsInt : Base {
  int value(int x) override {
    if (x % 11 == 0) throw 5;
    return x * 2;
  }
};

__attribute__((noinline)) int run(Base *base, int n) {
  int r = 0;
  for (int i = 0; i < n; i++) {
    std::string s("abc");
    try {
      r += base->value(i) + s.size();
    } catch (std::exception &e) {
      r += 3;
      s += e.what();
    } catch (int k) {
      r += k;
    }
    r += s.size();
  }
  return r;
}

template <class T> __attribute__((noinline)) int middle(int n) {
  try {
    std::vector<T> v;
    for (int i = 0; i < n; i++) {
      v.push_back(i * 7 % 5);
      if (i == 50) throw std::string("big");
    }
    std::sort(v.begin(), v.end());
    return v[n / 2];
  } catch (std::string &s) {
    return s.size();
  }
}

int main() {
  Throws a;
  ThrowsInt b;
  std::map<int, std::string> m;
  int r = run(&a, 100) + run(&b, 100) + middle<int>(20) + middle<unsigned>(80);
  for (int i = 0; i < 50; i++) m[i % 13] += "z";
  for (auto &x : m) r += x.second.size();
  std::printf("%d\n", r);
}
