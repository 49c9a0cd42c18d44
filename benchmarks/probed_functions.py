"""A C++ program of 50,000 functions with pseudo probes, most of them in code that was inlined.

Functions stand in layers. Each runs a few helpers, which are inlined into it with the helpers that
they run, and calls functions of the next layer. So there are many probes, and many contexts.
`python benchmarks/probed_functions.py FOLDER` builds it, which takes twenty minutes of a processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import many_files

LAYERS, FILES_A_LAYER, FUNCTIONS_A_FILE = 5, 8, 1250
CALLS, STRIDE = 2, 7919
FLAGS = (
    "-w",
    "-O2",
    "-g1",
    "-fdebug-info-for-profiling",
    "-fpseudo-probe-for-profiling",
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-fno-optimize-sibling-calls",
)

_HEAD = """#define INLINED static inline __attribute__((always_inline)) long
INLINED odd(long x, long k) { return x & 1 ? x * k + 1 : x / 2 + k; }
INLINED fold(long x, long k) {
  long s = x;
  for (long i = 0; i < (x & 3); i++) s += s % 3 ? odd(s, k) : odd(i, x);
  return s;
}
INLINED pick(long x, long k) {
  switch ((x + k) & 7) {
  case 0: return fold(x, k);
  case 1: return odd(x, k + 1);
  case 2: return x ^ k;
  case 3: return fold(x + k, 3);
  default: return x > k ? odd(x, 5) : x + 7;
  }
}
"""
_FUNCTION = """
long f{n}(long x) {{
  long s = pick(x, {a}) + {a};
  if (s % {b} < 3) s += pick(s, {b});
  if (x & 64) s -= fold(s, {a});
{calls}  return s;
}}
"""
_MAIN = """#include <cstdlib>
{declared}static long (*const all[])(long) = {{{names}}};
int main(int, char **argv) {{
  long sum = 0, rounds = std::atol(argv[1]);
  for (long r = 0; r < rounds; r++)
    for (int i = 0; i < {tops}; i++)
      sum = sum / 3 + all[i](std::labs(sum % 1000) + r + i);
  return sum == 42;
}}
"""
_PER_LAYER = FILES_A_LAYER * FUNCTIONS_A_FILE


def _callees(n: int) -> list[int]:
    """What a function calls, in the next layer: none in the last one."""
    layer, place = divmod(n, _PER_LAYER)
    if layer == LAYERS - 1:
        return []
    return [
        (layer + 1) * _PER_LAYER + (place * CALLS + i * STRIDE) % _PER_LAYER for i in range(CALLS)
    ]


def _function(n: int) -> str:
    calls = "".join(f"  s += f{callee}(s % 997);\n" for callee in _callees(n))
    return _FUNCTION.format(n=n, a=2 + n % 11, b=3 + n % 7, calls=calls)


def _sources() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    for f in range(LAYERS * FILES_A_LAYER):
        numbers = range(f * FUNCTIONS_A_FILE, (f + 1) * FUNCTIONS_A_FILE)
        callees = sorted({callee for n in numbers for callee in _callees(n)})
        declared = "".join(f"long f{n}(long);\n" for n in callees)
        yield f"part{f}.cc", _HEAD + declared + "".join(map(_function, numbers))
    names = [f"f{n}" for n in range(_PER_LAYER)]
    declared = "".join(f"long {name}(long);\n" for name in names)
    yield "main.cc", _MAIN.format(declared=declared, names=", ".join(names), tops=_PER_LAYER)


def build(folder: Path) -> Path:
    """The program, built if it is not there; needs clang-22 and lld-22."""
    return many_files.build(folder / "probed", _sources(), FLAGS, ["-no-pie"])


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
