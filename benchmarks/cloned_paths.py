"""What clones of paths add to Propeller's layout.

``python benchmarks/cloned_paths.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS]``

Builds a program with a block map, records it with `--train`, lays it out with and without
`--propeller-clone-paths`, and counts both with `--arguments`, beside the build that was recorded.
It wants clang 22 and lld 22.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

LBR2PGO = (sys.executable, "-m", "lbr2pgo")
FLAGS = ("-O2", "-g1", "-w", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--build-id")
WAYS = {"laid out": (), "with clones": ("--propeller-clone-paths",)}


def run(*words: object) -> str:
    """What a command says on standard output."""
    return subprocess.run(
        list(map(str, words)), check=True, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ).stdout  # fmt: skip


def main() -> None:
    """Print a row for each build, with ratios to the one before, at first the recorded one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", nargs="+")
    for name in ("flags", "train", "arguments"):
        parser.add_argument(f"--{name}", type=shlex.split, default=[])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    compiler = "clang++-22" if given.sources[0].endswith(("cc", "cpp")) else "clang-22"
    build = (compiler, *FLAGS, *given.sources, *given.flags)
    plain, recording = given.folder / "plain", given.folder / "perf.data"
    run(*build, "-fbasic-block-address-map", "-o", plain)
    run(*LBR2PGO, "record", "--emulate", "-c", 997, "-o", recording, "--", plain, *given.train)
    builds = [plain]
    for number, asked in enumerate(WAYS.values()):
        program, clusters, order = (given.folder / f"{number}{end}" for end in ("", ".cc", ".ld"))
        to = ("--propeller-cc", clusters, "--propeller-ld", order, *asked)
        run(*LBR2PGO, "convert", recording, "--binary", plain, *to)
        links = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={order}"
        run(*build, f"-fbasic-block-sections=list={clusters}", links, "-o", program)
        builds.append(program)
    measure = (*LBR2PGO, "measure", "--runs", 0, "--format", "json")
    rows = json.loads(run(*measure, *builds, "--", *given.arguments))["programs"]
    for name, row, before in zip(WAYS, rows[1:], rows, strict=False):
        taken, text = row["counts"]["taken"], row["size"]["text"]
        ratios = taken / before["counts"]["taken"], text / before["size"]["text"]
        print(f"{name:12} {taken:13,} taken branches ({ratios[0]:.3f})  code {ratios[1]:.3f}")


if __name__ == "__main__":
    main()
