"""The source of a program that adapts to time: each run ends after another time than the last."""

from __future__ import annotations

FOR_ANOTHER_TIME = """
#include <time.h>
static long now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}
int main(void) {
  long start = now(), end = start + (20 + start / 1000 % 200) * 1000000;
  while (now() < end);
}
"""
