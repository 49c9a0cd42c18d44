"""What laying out costs beside writing fdata, and what ext-TSP does for many blocks.

``python benchmarks/layout.py FOLDER`` builds a C++ program of 50,000 functions with a block map
into the folder, which takes some minutes of a processor, and records it: all of its functions run.
CPU seconds of each conversion are medians, the two in turn. It wants clang-22 and lld-22.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import many_files
import numpy as np
from measure import Cost, medians, run

from lbr2pgo.profiles.propeller._ext_tsp import layout

FILES, METHODS = 50, 1000
TIMES = 5
BLOCKS = 100_000
FLAGS = ("-w", "-O2", "-g1", "-ffunction-sections", "-fbasic-block-address-map")
LINKING = ("-no-pie", "-Wl,--emit-relocs")
LBR2PGO = (sys.executable, "-m", "lbr2pgo")

_METHOD = """
long Part{f}::run{m}(long x) {{
  long s = x % {a} ? x * {b} : x / {a};
  for (long i = 0; i < (x & 3); i++) s += s % {b} ? i ^ s : s >> 1;
  switch ((s + {m}) & 7) {{
  case 0: s ^= x; break;
  case 1: s += {a} * x; break;
  case 2: if (s > x) s -= {b}; break;
  case 3: s = s < 0 ? -s : s + 1; break;
  case 4: throws(s);
  }}
  return {then};
}}
"""


def _sources() -> Iterator[tuple[str, str]]:
    """Name and text of each file: a class, whose methods call the next ones by tens."""
    for f in range(FILES):
        methods = "".join(f"  long run{m}(long);\n" for m in range(METHODS))
        calls = "".join(f"    s += part.run{m}(s + r + {m});\n" for m in range(0, METHODS, 10))
        bodies = "".join(
            _METHOD.format(
                f=f, m=m, a=3 + m % 17, b=5 + m % 13,
                then=f"run{m + 1}(s)" if m % 10 < 9 else "s",
            )
            for m in range(METHODS)
        )  # fmt: skip
        yield (
            f"part{f}.cc",
            (
                "static void throws(long s) { if (s == -123456789) throw s; }\n"
                f"struct Part{f} {{\n{methods}}};\n{bodies}\n"
                f"long all{f}(long s, long r) {{\n  Part{f} part;\n{calls}  return s; }}\n"
            ),
        )
    declared = "".join(f"long all{f}(long, long);\n" for f in range(FILES))
    calls = "".join(f"    s = all{f}(s % 1000, r);\n" for f in range(FILES))
    yield (
        "main.cc",
        (
            f"#include <cstdlib>\n{declared}int main(int, char **argv) {{\n  long s = 7;\n"
            f"  for (long r = 0; r < std::atol(argv[1]); r++) {{\n{calls}  }}\n"
            "  return s == 42;\n}\n"
        ),
    )


def conversions(folder: Path) -> list[tuple[str, Cost]]:
    """Of fdata and of Propeller's files."""
    program = many_files.build(folder / "parts", _sources(), FLAGS, LINKING)
    recording = folder / "parts.data"
    if not recording.exists():
        run([*LBR2PGO, "record", "--emulate", "-c", "97", "-o", str(recording), "--",
             str(program), "20"])  # fmt: skip
    convert = [*LBR2PGO, "convert", str(recording), "--binary", str(program)]
    cc, order = f"--propeller-cc={folder / 'cc'}", f"--propeller-ld={folder / 'ld'}"
    outputs = {"fdata": [f"--fdata={folder / 'fdata'}"], "Propeller": [cc, order]}
    costs: dict[str, list[Cost]] = {name: [] for name in outputs}
    for _ in range(TIMES):
        for name, words in outputs.items():
            costs[name].append(run([*convert, *words]))
    return [(name, medians(each)) for name, each in costs.items()]


def seconds_of_layout(blocks: int) -> float:
    """CPU seconds for `BLOCKS` blocks in functions of that many, each with two random edges."""
    chance = np.random.default_rng(blocks)
    functions = BLOCKS // blocks
    source = np.repeat(np.arange(BLOCKS), 2)
    begin = source - source % blocks
    near = begin + np.minimum(source % blocks + chance.integers(1, 9, len(source)), blocks - 1)
    far = begin + chance.integers(0, blocks, len(source))
    target = np.where(chance.random(len(source)) < 0.8, near, far)
    weight = chance.zipf(1.5, len(source)).astype(np.uint64) % np.uint64(100_000)
    size, count = chance.integers(1, 60, (2, BLOCKS)).astype(np.uint64)
    before = time.process_time()
    layout(
        np.arange(functions + 1) * blocks, size, count, np.arange(functions + 1) * blocks * 2,
        source, target, weight,
    )  # fmt: skip
    return time.process_time() - before


def main(folder: Path) -> None:
    """Print all figures."""
    for blocks in (100, 1_000, 10_000):
        taken = seconds_of_layout(blocks)
        print(f"{BLOCKS:,} blocks in functions of {blocks:,}: {taken:.2f} s")
    for name, cost in conversions(folder):
        print(f"50,000 functions, {name}: {cost.cpu:.2f} s CPU, {cost.peak:.0f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
