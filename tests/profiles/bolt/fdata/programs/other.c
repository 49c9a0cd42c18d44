/* A local function of the same name as one in dispatch.c. */
extern volatile int sink;

static __attribute__((noinline)) int same_name(int x) {
  if (x > 7) return sink - x;
  sink = x * 5;
  return x * 3;
}

int other(int x) { return same_name(x) + 1; }
