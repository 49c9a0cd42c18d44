"""What profiles of each recorder gain: clang's and BOLT's results, counted.

Of stacks of some depths, with and without the fall-throughs that no recorder sees; of the deepest
without what only branches tell, where calls through pointers lead; and of samples of instructions.

``python benchmarks/recorders.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS] [--seeds=N] [--depths=N,N]``

The folder keeps the builds. It wants clang 22, lld 22 and llvm-bolt 22.
"""

from __future__ import annotations

import argparse
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
from which_profile import BOLT, CLANG, LBR2PGO, PERIOD, Bench, call

from lbr2pgo.analyses.accuracy import executions
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import image_addresses

DEPTHS = "8,16,32"
SAMPLES = (20_000, 40_000)
Recording = tuple[str, Path, list[str]]
"""What it is called, its file, and how it is converted."""


def recordings(bench: Bench, plain: Path, depths: list[int], seed: int) -> Iterator[Recording]:
    """Those of one run."""
    exact = bench.folder / f"{seed}.exact.npz"
    for depth in depths:
        recording = bench.folder / f"{seed}.{depth}.data"
        call(*LBR2PGO, "record", "--emulate", "-c", PERIOD, "--seed", seed, "--depth", depth,
             "--exact", exact, "-o", recording, "--", plain, *bench.training)  # fmt: skip
        yield f"stacks of {depth}", recording, []
        yield f"stacks of {depth}, corrected", recording, ["--correct-runs"]
    direct = bench.folder / f"{seed}.direct"
    direct.write_text(without_pointers(plain, recording, bench.folder / f"{seed}.traces"))
    yield f"stacks of {depth}, without targets of pointers", direct, []
    for samples in SAMPLES:
        instructions = bench.folder / f"{seed}.{samples}.instructions"
        instructions.write_text(drawn(plain, exact, samples, seed))
        yield f"{samples:,} instructions", instructions, ["--no-lbr"]


def without_pointers(plain: Path, recording: Path, traces: Path) -> str:
    """A recording's branches and fall-throughs, but for where calls through pointers lead."""
    call(*LBR2PGO, "convert", recording, "--binary", plain, "--preaggregated", traces)
    code = Program.open(plain).branches
    calls = set(code.address[code.kind == Kind.INDIRECT_CALL].tolist())
    kept = []
    for line in traces.read_text().splitlines():
        kind, source, *rest = line.split()
        if int(source, 16) not in calls:
            kept.append(line)
        elif kind == "T":
            kept.append(" ".join(["F", *rest]))
    return "\n".join([*kept, ""])


def drawn(program: Path, counts: Path, samples: int, seed: int) -> str:
    """So many samples of any instructions that ran, as BOLT's pre-aggregated text."""
    opened = Program.open(program)
    edges = exact_edges_of(counts, opened)
    named = np.concatenate([edges.source[edges.source > 0], edges.target[edges.target > 0]])
    code = opened.instructions_for(image_addresses(named))
    ran = executions(edges, code)
    found = np.random.default_rng(seed).multinomial(samples, ran / ran.sum())
    rows = zip(code.address.tolist(), found.tolist(), strict=True)
    return "E instructions\n" + "".join(f"S {address:x} {n}\n" for address, n in rows if n)


def optimized(bench: Bench, plain: Path, stem: str, recording: Path, how: list[str]) -> list[Path]:
    """The builds that clang and BOLT make of a recording."""
    profile, fdata = bench.folder / f"{stem}.prof", bench.folder / f"{stem}.fdata"
    call(*LBR2PGO, "convert", recording, "--binary", plain, *how,
         "--llvm", profile, "--fdata", fdata)  # fmt: skip
    bolted = bench.folder / f"{stem}.bolt"
    call("llvm-bolt-22", plain, "-o", bolted, "-data", fdata, *BOLT)
    return [bench.build(f"{stem}.clang", *CLANG, f"-fprofile-sample-use={profile}"), bolted]


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flags", default="", help="of every build")
    parser.add_argument("--train", default="", help="arguments of the run to learn from")
    parser.add_argument("--arguments", default="", help="of the run to measure")
    parser.add_argument("--seeds", type=int, default=3, help="recordings of each kind")
    parser.add_argument("--depths", default=DEPTHS, help="of stacks, the deepest last")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    words = map(shlex.split, (args.flags, args.train, args.arguments))
    bench = Bench(args.folder.resolve(), args.sources, *words)
    plain = bench.build("plain", *CLANG)
    depths, found = [int(depth) for depth in args.depths.split(",")], defaultdict(list)
    for seed in range(1, args.seeds + 1):
        for number, (name, recording, how) in enumerate(recordings(bench, plain, depths, seed)):
            programs = optimized(bench, plain, f"{seed}.{number}", recording, how)
            _, clang, bolt = (each["ratios"] for each in bench.measure(plain, *programs))
            found[name].append((clang["instructions"], clang["taken"], bolt["taken"]))
    print("| recorded | clang: instructions | taken | BOLT: taken |\n| --- | --- | --- | --- |")
    for name, rows in found.items():
        means = " | ".join(f"{mean(column):.3f}" for column in zip(*rows, strict=True))
        print(f"| {name} | {means} |")


if __name__ == "__main__":
    main()
