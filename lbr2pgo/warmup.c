// The program of `lbr2pgo warmup`: one loop with a function inlined into it. Built by
// clang-22 -O2 -g1 -fdebug-info-for-profiling -nostdlib -static -fuse-ld=lld
//   -Wl,-z,norelro,--build-id,-e,main -fno-asynchronous-unwind-tables
//   -fno-vectorize -fno-unroll-loops warmup.c -o warmup.elf
static int odd(int i) {
  return i & 1;
}

int main(int count, char **names) {
  int sum = 0;
  for (int i = 0; i < count; i++)
    if (odd(names[i][0]))
      sum += i;
  return sum;
}
