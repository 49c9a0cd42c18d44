"""A C++ program with very many functions, as large services have them.

Each file has its own types, with the templates of the standard library made of them once more, and
its own functions, which are called across files. Some functions of every file run, most don't. One
file is compiled, and the others are its object with other names, as long as its own: compiling all
of them would take twenty minutes.
"""

from __future__ import annotations

from pathlib import Path

import many_files

FILES, TYPES = 32, 24
ONE_RUNS_OF = 4
FILES_OF_500_MB = 46
"""With all that there is to know of debugging (`-g`)."""
FLAGS = (
    "-w",
    "-O2",
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


def _file(number: int) -> str:
    return f"part{number:02}.cc"


def _part() -> str:
    """The text of the first file."""
    return _HEAD + "".join(_TYPE.format(f="00", t=t, p=3 + 2 * t) for t in range(TYPES))


def _renamed(first: bytes, number: int) -> bytes:
    """The object of another file, made of the first one's."""
    for name in (b"T%02d_", b"run%02d_", b"part%02d.cc"):
        first = first.replace(name % 0, name % number)
    return first


def _main(files: int) -> str:
    names = [f"run{f:02}_{t}" for f in range(files) for t in range(TYPES)]
    table = ", ".join(names)
    declared = "".join(f"long {name}(long);\n" for name in names)
    return (
        f"#include <cstdlib>\n{declared}static long (*const all[])(long) = {{{table}}};\n"
        "int main(int, char **argv) {\n  long sum = 0, rounds = std::atol(argv[1]);\n"
        "  for (long r = 0; r < rounds; r++)\n"
        f"    for (int i = 0; i < {len(names)}; i += {ONE_RUNS_OF})\n"
        "      sum = sum / 3 + all[i](std::labs(sum % 1000) + r + i);\n  return sum == 42;\n}\n"
    )


def build(folder: Path, files: int = FILES, debug: str = "-g1") -> Path:
    """The program, built if it is not there; needs clang-22 and lld-22."""
    program, flags = folder / "many", [*FLAGS, debug]
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    objects = [
        many_files.compiled(folder, "main.cc", _main(files), flags),
        many_files.compiled(folder, _file(0), _part(), flags),
    ]
    first = objects[-1].read_bytes()
    for number in range(1, files):
        objects.append(folder / f"{_file(number)}.o")
        objects[-1].write_bytes(_renamed(first, number))
    many_files.link(program, objects, ["-pie", "-Wl,--emit-relocs"])
    return program
