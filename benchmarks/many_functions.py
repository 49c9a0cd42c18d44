"""A C++ program with very many functions, as large services have them.

Each source file makes its own types, so that the templates of the standard library are compiled
into it once more, and its own functions, which are called across files. Some functions of every
file run, most don't.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import many_files

FILES, TYPES = 32, 24
ONE_RUNS_OF = 4
FLAGS = (
    "-w",
    "-O2",
    "-g1",
    "-fdebug-info-for-profiling",
    "-std=c++17",
    "-fPIE",
    "-ffunction-sections",
)

_HEAD = """#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>
"""
_TYPE = """
struct T{f}_{t} {{
  long key; std::string name;
  bool operator<(const T{f}_{t} &o) const {{
    return key % {p} < o.key % {p} || (key % {p} == o.key % {p} && name < o.name);
  }}
}};
static long fold{t}(std::vector<T{f}_{t}> &v, long n) {{
  std::map<T{f}_{t}, long> seen; std::unordered_map<std::string, std::vector<T{f}_{t}>> by;
  for (auto &x : v) {{ seen[x] += x.key; by[x.name].push_back(x); }}
  for (auto &[name, all] : by) std::stable_sort(all.begin(), all.end());
  std::sort(v.begin(), v.end());
  auto end = std::unique(v.begin(), v.end(), [](auto &a, auto &b) {{ return a.key == b.key; }});
  return std::accumulate(v.begin(), end, n,
                         [&](long s, auto &x) {{ return s * {p} + seen[x] + x.key; }});
}}
long run{f}_{t}(long n) {{
  std::vector<T{f}_{t}> v;
  for (long i = 0; i < 6 + n % 5; i++)
    v.push_back({{(n * {p} + i * 7919) % 97, std::string(1 + (n + i) % 3, 'a' + i % 5)}});
  return fold{t}(v, n);
}}
"""


def _sources() -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    for f in range(FILES):
        types = "".join(
            _TYPE.format(f=f, t=t, p=3 + 2 * (f * TYPES + t) % 89) for t in range(TYPES)
        )
        yield f"part{f}.cc", _HEAD + types
    names = [f"run{f}_{t}" for f in range(FILES) for t in range(TYPES)]
    declared = "".join(f"long {name}(long);\n" for name in names)
    table = ", ".join(names)
    yield (
        "main.cc",
        (
            f"#include <cstdlib>\n{declared}static long (*const all[])(long) = {{{table}}};\n"
            "int main(int, char **argv) {\n  long sum = 0, rounds = std::atol(argv[1]);\n"
            "  for (long r = 0; r < rounds; r++)\n"
            f"    for (int i = 0; i < {len(names)}; i += {ONE_RUNS_OF})\n"
            "      sum = sum / 3 + all[i](std::labs(sum % 1000) + r + i);\n  return sum == 42;\n}\n"
        ),
    )


def build(folder: Path) -> Path:
    """The program, built if it is not there; needs clang-22 and lld-22."""
    return many_files.build(folder / "many", _sources(), FLAGS, ["-pie", "-Wl,--emit-relocs"])
