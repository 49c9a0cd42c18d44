"""A recording of every branch of a program whose functions lie on pages of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builders.fixtures import Run, Tool

import lbr2pgo

SOURCE = """
#include <unistd.h>
#define PAGE __attribute__((noinline, aligned(4096)))
static volatile int sum;
PAGE int once(int n) { return n & 4 ? n + 9 : n - 4; }
PAGE int never(int n) { return n & 4 ? n + 5 : n - 2; }
PAGE int far(int n) { __asm__ volatile(".rept 9000; nop; .endr"); return n & 8 ? n + 1 : n; }
PAGE int often(int n) {
  int s = sum;
  for (int i = 0; i < n; i++) s = s * 31 + (s >> 3 & 1 ? i : n);
  return s;
}
PAGE int later(int n) { return n & 16 ? n + 2 : n - 8; }
PAGE int main(int argc, char **argv) {
  sum += once(argc);
  sum += often(20 * 1000);
  sum += far(argc);
  sum += often(20 * 1000);
  sum += later(argc);
  _exit(argc > 5 ? never(argc) : often(500) == 3);
}
"""
"""`far` is run through for two pages that no branch leads to or leaves."""


@dataclass(frozen=True)
class Start:
    """The program, and what was recorded of one run."""

    program: Path
    recording: Path
    exact: Path


def start(directory: Path, tool: Tool, run: Run) -> Start:
    """Build and record it."""
    tool("qemu-x86_64")
    source, program = directory / "p.c", directory / "p"
    source.write_text(SOURCE)
    run(tool("gcc"), "-O1", "-no-pie", source, "-o", program)
    recording, exact = directory / "perf.data", directory / "exact.npz"
    lbr2pgo.record([str(program)], output=recording, exact=exact, startup=60)
    return Start(program, recording, exact)
