// Functions that every file of the program has its own copy of, some of them the same when compiled.
inline int leaf(int x) { return x * x + 3; }

inline int middle(int x) {
  int result = 0;
  for (int i = 0; i < x; i++) result += leaf(i) ^ i;
  return result;
}

template <int N> struct Step {
  static inline __attribute__((always_inline)) int run(int x) {
    return Step<N - 1>::run(x * 3 + N) ^ (x >> N);
  }
};

template <> struct Step<0> {
  static inline int run(int x) { return x + 1; }
};

struct Shape {
  virtual int area(int k) const { return k; }
  virtual ~Shape() {}
};
