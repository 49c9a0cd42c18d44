/* A program with phases: so many rounds of each of two kinds of work, as its arguments say in turn,
   the first of loading, the next of serving, and so on. The last line names the rounds. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

#define WORK(name, mask)                                                    \
  __attribute__((noinline)) static void name(int rounds) {                 \
    for (int i = 0; i < rounds; i++) {                                     \
      unsigned long x = sink * 6364136223846793005ul + i;                  \
      sink = (x >> 60) & mask ? x ^ x >> 7 : x;                            \
    }                                                                      \
  }

WORK(parse, 1)
WORK(load, 2)
WORK(serve, 3)
WORK(answer, 5)

int main(int count, char **words) {
  for (int phase = 1; phase < count; phase++)
    for (int round = atoi(words[phase]); round > 0; round--) {
      if (phase % 2) {
        parse(800);
        load(300);
      } else {
        serve(700);
        answer(400);
      }
    }
  printf("%d\n", count - 1);
  return 0;
}
