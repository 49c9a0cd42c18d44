"""A program whose profile changes hardly any cycles, but makes code that never ran small."""

from __future__ import annotations

from pathlib import Path

_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
static unsigned step(unsigned h, unsigned c) {
  h ^= c * 0x9e3779b1u;
  if (h & 1) h += c; else h ^= h >> 3;
  if (h & 2) h -= c << 1; else h += h >> 7;
  return h * 0x85ebca6bu;
}
void never(int *a, const int *b, int n) {
  for (int i = 0; i < n; i++) a[i] += b[i] * 3;
  for (int i = 0; i < n; i++) a[i] ^= b[i] << 2;
}
int main(int argc, char **argv) {
  static int a[64], b[64];
  unsigned h = 1;
  if (argc > 9) never(a, b, argc);
  for (int i = 0; i < 1000 * atoi(argv[1]); i++) h = step(h, i);
  printf("%u %d\\n", h, a[3]);
}
"""
BUILD_SHRUNK = "clang-22 $CFLAGS app.c -o app $LDFLAGS"


def write_shrunk() -> None:
    """Its source, in the working directory."""
    Path("app.c").write_text(_SOURCE)
