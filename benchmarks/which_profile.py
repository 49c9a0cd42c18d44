"""What each profile gains: a program built with each, and its exact counts as a table.

``python benchmarks/which_profile.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS]``

The folder keeps the builds. It wants clang 22, lld 22, llvm-bolt 22 and GCC 12.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LBR2PGO = (sys.executable, "-m", "lbr2pgo")
CLANG = ("-O2", "-g1", "-fdebug-info-for-profiling", "-ffunction-sections", "-fuse-ld=lld",
         "-Wl,--emit-relocs,--build-id", "-fbasic-block-address-map")  # fmt: skip
GCC = ("-O2", "-g")
PROBES = "-fpseudo-probe-for-profiling"
BOLT = ("-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions",
        "-split-all-cold")  # fmt: skip
PERIOD = 499


@dataclass(frozen=True, slots=True)
class Bench:
    """A program to be built and run."""

    folder: Path
    sources: Sequence[str]
    flags: Sequence[str]
    training: Sequence[str]
    """Arguments of the run that profiles are made of."""
    arguments: Sequence[str]
    """Those of the run that is measured."""

    def build(self, name: str, *words: str) -> Path:
        """Compile and link with these options."""
        compiler = "gcc-12" if name.startswith("gcc") else "clang-22"
        if any(source.endswith((".cc", ".cpp")) for source in self.sources):
            compiler = compiler.replace("gcc", "g++").replace("clang", "clang++")
        out = self.folder / name
        call(compiler, *words, *self.sources, *self.flags, "-o", out)
        return out

    def convert(self, program: Path, *outputs: object) -> None:
        """Record a run, and write profiles of it."""
        recording = program.with_suffix(".data")
        run = (*LBR2PGO, "record", "--emulate", "-c", PERIOD, "-o", recording, "--", program)
        call(*run, *self.training)
        call(*LBR2PGO, "convert", recording, "--binary", program, *outputs)

    def measure(self, *programs: Path) -> list[dict[str, float]]:
        """Instructions and taken branches of each, for one of the first."""
        words = ("measure", "--runs", 0, "--format", "json", *programs, "--", *self.arguments)
        return [each["ratios"] for each in json.loads(call(*LBR2PGO, *words))["programs"]]


def call(*words: object) -> str:
    """Run a command; what it prints."""
    return subprocess.run(
        list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def laid_out(bench: Bench, base: Path, name: str, *words: str) -> tuple[Path, Path]:
    """The build that Propeller makes of a build, and the one that BOLT does."""
    cc, order, fdata = (base.with_suffix(end) for end in (".cc", ".ld", ".fdata"))
    outputs = ("--propeller-cc", cc, "--propeller-ld", order, "--fdata", fdata)
    bench.convert(base, *outputs)
    use = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={order}"
    flags = (flag for flag in CLANG if flag != "-fbasic-block-address-map")
    propeller = bench.build(
        f"{name}-propeller", *flags, f"-fbasic-block-sections=list={cc}", use, *words
    )
    bolted = bench.folder / f"{name}-bolt"
    call("llvm-bolt-22", base, "-o", bolted, "-data", fdata, *BOLT)
    return propeller, bolted


def with_clang(bench: Bench) -> list[Path]:
    """Builds by clang, the plain one first."""
    plain = bench.build("clang-O2", *CLANG)
    profile = bench.folder / "clang.prof"
    bench.convert(plain, "--llvm", profile)
    use = f"-fprofile-sample-use={profile}"
    sampled = bench.build("clang-AutoFDO", *CLANG, use)
    return [
        plain, sampled, *trained_apart(bench), instrumented(bench),
        *laid_out(bench, plain, "clang-O2"), *laid_out(bench, sampled, "clang-AutoFDO", use),
    ]  # fmt: skip


def trained_apart(bench: Bench) -> list[Path]:
    """Builds with profiles of other builds than the plain one."""
    return [
        with_profile_of(bench, "probes", PROBES),
        with_profile_of(bench, "lines-O1", "-O1"),
        with_profile_of(bench, "probes-O1", PROBES, "-O1"),
    ]


def with_profile_of(bench: Bench, name: str, *flags: str) -> Path:
    """The build with a profile of one that had these flags more."""
    recorded = bench.build(f"clang-recorded-{name}", *CLANG, *flags)
    profile = bench.folder / f"{name}.prof"
    bench.convert(recorded, "--llvm", profile)
    kept = [flag for flag in flags if flag == PROBES]
    return bench.build(f"clang-{name}", *CLANG, *kept, f"-fprofile-sample-use={profile}")


def instrumented(bench: Bench) -> Path:
    """The build with a profile that counters in the program took."""
    raw, profile = bench.folder / "counters", bench.folder / "counters.profdata"
    counting = bench.build("clang-counting", *CLANG, f"-fprofile-generate={raw}")
    call(counting, *bench.training)
    call("llvm-profdata-22", "merge", "-o", profile, raw)
    return bench.build("clang-instrumented", *CLANG, f"-fprofile-use={profile}")


def with_gcc(bench: Bench) -> list[Path]:
    """Builds by GCC, the plain one first."""
    plain, profile = bench.build("gcc-O2", *GCC), bench.folder / "gcc.afdo"
    bench.convert(plain, "--afdo", profile)
    return [plain, bench.build("gcc-AutoFDO", *GCC, f"-fauto-profile={profile}")]


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flags", default="", help="of every build")
    parser.add_argument("--train", default="", help="arguments of the run to learn from")
    parser.add_argument("--arguments", help="of the run to measure (default: the same)")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    measured = args.train if args.arguments is None else args.arguments
    words = map(shlex.split, (args.flags, args.train, measured))
    bench = Bench(args.folder.resolve(), args.sources, *words)
    print("| build | instructions | taken branches |\n| --- | --- | --- |")
    for programs in (with_clang(bench), with_gcc(bench)):
        for program, ratios in zip(programs, bench.measure(*programs), strict=True):
            print(f"| {program.name} | {ratios['instructions']:.3f} | {ratios['taken']:.3f} |")


if __name__ == "__main__":
    main()
