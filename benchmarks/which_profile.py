"""What each profile gains: a program built with each, its exact counts and its code as a table.

``python benchmarks/which_profile.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS]... [--builds=PATTERN...] [--target=TRIPLE]``

Code is all sections of code (`.text`), beside that of `-O2`, and of counters, laid out alike; what
llvm-bolt made has the old one besides. The folder keeps builds, counts and sizes: what is there is
not made again, and `shares.py` makes tables of several folders. It wants clang 22, lld 22,
llvm-bolt 22 and GCC 12.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from lbr2pgo.pgo.code_size import text_size
from lbr2pgo.pgo.flags import KEPT_CALLS, PROBES, UNRELAXED
from lbr2pgo.pgo.kinds import USED
from lbr2pgo.recorders.guest import find_guest

LBR2PGO = (sys.executable, "-m", "lbr2pgo")
CLANG = ("-O2", "-g1", "-fdebug-info-for-profiling", "-ffunction-sections", "-fuse-ld=lld",
         "-Wl,--emit-relocs,--build-id")  # fmt: skip
BLOCK_MAP = "-fbasic-block-address-map"
GCC = ("-O2", "-g")
BOLT = ("-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions",
        "-split-all-cold")  # fmt: skip

KINDS = tuple(
    f"{told_by}{training}"
    for training in ("", "-O1", "-O1-fno-inline")
    for told_by in ("lines", "probes", "contexts")
)
"""What profiles are told by, and the flags of the build that is recorded for them."""
REFINED: dict[str, tuple[str, ...]] = {"exact": (), **USED}
"""How some of their profiles are made or used: the end of a build's name, and its flags."""
REFINEMENTS = (
    "probes-O1-unprobed", "probes-O1-eager", "probes-O1-eager-unprobed", "contexts-O1-unprobed",
    "probes-O1-exact", "probes-O1-exact-eager", "probes-O1-exact-eager-unprobed",
    "lines-O1-ext-tsp", "contexts-O1-late",
)  # fmt: skip
OVERWRITTEN = tuple(f"{kind}-overwritten" for kind in KINDS[3:6])
"""As `lbr2pgo pgo` uses them, but for lines."""
PLAIN, INSTRUMENTED = "plain", "instrumented"
BUILDS = (
    PLAIN, *KINDS, *REFINEMENTS, *OVERWRITTEN, INSTRUMENTED,
    *(f"{base}+bolt" for base in (PLAIN, *KINDS[:6], *REFINEMENTS, INSTRUMENTED)),
    *(f"{base}+propeller" for base in (PLAIN, "lines", "lines-O1", *REFINEMENTS, INSTRUMENTED)),
    "gcc", "gcc-afdo",
)  # fmt: skip
PERIOD = 499
FIGURES, SIZES = "figures.json", "sizes.json"
Sizes = Mapping[str, int]
"""Bytes of code by build."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A program to be built and run."""

    folder: Path
    sources: Sequence[str]
    flags: Sequence[str]
    training: Sequence[str]
    """Arguments of the run that profiles are made of."""
    arguments: Sequence[Sequence[str]]
    """Those of the runs that are measured."""
    period: int = PERIOD
    """Taken branches from sample to sample."""
    target: str | None = None
    """What clang compiles for, if not for this machine."""

    def clang(self, name: str, *words: str) -> Path:
        """Compile and link with clang and what each of its builds is given."""
        # For RISC-V, clang 22 has no block maps.
        target = BLOCK_MAP if self.target is None else f"--target={self.target}"
        return self.build(name, *CLANG, target, *words)

    def build(self, name: str, *words: str) -> Path:
        """Compile and link with these options."""
        compiler = "gcc-12" if name.startswith("gcc") else "clang-22"
        is_plus = any(source.endswith((".cc", ".cpp")) for source in self.sources)
        out, libraries = self.folder / name, ("-lstdc++", "-lm") if is_plus else ()
        call(compiler, *words, *self.sources, *self.flags, *libraries, "-o", out)
        return out

    def convert(
        self, program: Path, *outputs: object, how: Sequence[str] = (), exact: bool = False
    ) -> None:
        """Record a run, and write profiles of its samples, or of all branches."""
        recording = self.folder / f"{program.name}{''.join(how)}.data"
        counts = recording.with_suffix(".exact")
        how = (*how, "--exact", str(counts)) if exact else how
        run = (*LBR2PGO, "record", "--emulate", *how, "-c", self.period, "-o", recording)
        call(*run, "--", program, *self.training)
        call(*LBR2PGO, "convert", counts if exact else recording, "--binary", program, *outputs)

    def measure(self, program: Path) -> list[list[int]]:
        """Instructions and taken branches of each run."""
        words = (*LBR2PGO, "measure", "--runs", 0, "--format", "json", program, "--")
        found = [json.loads(call(*words, *run))["programs"][0]["counts"] for run in self.arguments]
        return [[each["instructions"], each["taken"]] for each in found]


def call(*words: object) -> bytes:
    """Run a command; what it prints, which may be a compressor's."""
    return subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE).stdout


class Builds:
    """Builds of a program by their names, each made when it is asked for the first time."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._folder = bench, bench.folder
        self._file = bench.folder / FIGURES
        self.figures: dict[str, list[list[int]]] = {}
        """Instructions and taken branches by build, of each run that is measured."""
        if self._file.exists():
            self.figures = json.loads(self._file.read_text())
        self.sizes = dict(sizes_in(bench.folder))

    def count(self, name: str) -> None:
        """Build and measure, unless that was done."""
        if name not in self.figures:
            self.figures[name] = self._bench.measure(self.get(name))
            self._file.write_text(json.dumps(self.figures, indent=1))
        if name not in self.sizes:
            self.sizes[name] = text_size(self.get(name))
            (self._folder / SIZES).write_text(json.dumps(self.sizes, indent=1))

    def get(self, name: str) -> Path:
        """The build."""
        out = self._folder / name
        if not out.exists():
            self._make(name)
        return out

    def _make(self, name: str) -> None:
        base, _, layout = name.partition("+")
        if layout:
            self._lay_out(base, layout)
        elif name.startswith("gcc"):
            self._bench.build(name, *GCC, *self._for_gcc(name))
        else:
            self._bench.clang(name, *self._flags(name))

    def _flags(self, name: str) -> tuple[str, ...]:
        """What clang is given besides; `@Os` or the like at a name's end is another level."""
        name, _, level = name.partition("@")
        optimised = (f"-{level}",) if level else ()
        if name == PLAIN:
            return optimised
        if name == INSTRUMENTED:
            return (f"-fprofile-use={self._counters()}", *optimised)
        kind, *refined = unrefined(name)
        told_by, *training = kind.split("-", 1)
        probes = () if told_by == "lines" else PROBES
        is_exact = "exact" in refined
        profile = self._folder / f"{kind}{'-exact' if is_exact else ''}.prof"
        if not profile.exists():
            how = ("--call-graph",) if told_by == "contexts" else ()
            target = self._bench.target or ""
            kept: tuple[str, ...] = ()
            if probes and target.startswith("riscv"):
                kept = UNRELAXED
            elif probes and training:
                kept = KEPT_CALLS
            recorded = self._recorded((*probes, *words_of(training), *kept))
            self._bench.convert(recorded, "--llvm", profile, how=how, exact=is_exact)
        use = [flag for each in refined for flag in REFINED[each]]
        return (*probes, f"-fprofile-sample-use={profile}", *use, *optimised)

    def _recorded(self, flags: Sequence[str]) -> Path:
        if not flags:
            return self.get(PLAIN)
        name = f"recorded{''.join(flags)}"
        out = self._folder / name
        return out if out.exists() else self._bench.clang(name, *flags)

    def _counters(self) -> Path:
        """A profile of counters in the program."""
        raw, profile = self._folder / "counters", self._folder / "counters.profdata"
        if not profile.exists():
            counting = self._bench.clang("counting", f"-fprofile-generate={raw}")
            call(*find_guest((str(counting), *self._bench.training)).command())
            call("llvm-profdata-22", "merge", "-o", profile, raw)
        return profile

    def _for_gcc(self, name: str) -> tuple[str, ...]:
        if name == "gcc":
            return ()
        profile = self._folder / "gcc.afdo"
        self._bench.convert(self.get("gcc"), "--afdo", profile)
        return (f"-fauto-profile={profile}",)

    def _lay_out(self, base: str, layout: str) -> None:
        """By llvm-bolt, or by Propeller, which compiles once more."""
        built, stem = self.get(base), f"{self._folder / base}."
        clusters, order, fdata = (Path(stem + end) for end in ("cc", "ld", "fdata"))
        if layout == "bolt":
            self._bench.convert(built, "--fdata", fdata)
            call("llvm-bolt-22", built, "-o", f"{built}+bolt", "-data", fdata, *BOLT)
            return
        self._bench.convert(built, "--propeller-cc", clusters, "--propeller-ld", order)
        use = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={order}"
        sections = f"-fbasic-block-sections=list={clusters}"
        self._bench.build(f"{base}+propeller", *CLANG, *self._flags(base), sections, use)


def sizes_in(folder: Path) -> Sizes:
    """Of the builds that were counted there."""
    file = folder / SIZES
    found: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    return found


def reference(name: str) -> str:
    """The instrumented build that is laid out as another one is; of GCC there is none.

    >>> reference("probes-O1"), reference("lines+bolt"), reference("gcc-afdo")
    ('instrumented', 'instrumented+bolt', '')
    """
    _, plus, layout = name.partition("+")
    return "" if name.startswith("gcc") else f"{INSTRUMENTED}{plus}{layout}"


def growth(name: str, base: str, sizes: Sizes) -> float | None:
    """Code, with that of another build as 1; None where one is not known."""
    return sizes[name] / sizes[base] if name in sizes and base in sizes else None


def unrefined(name: str) -> list[str]:
    """The kind of a profile that a build uses, and what is at the end of its name.

    >>> unrefined("probes-O1-eager-unprobed"), unrefined("lines-O1-fno-inline")
    (['probes-O1', 'eager', 'unprobed'], ['lines-O1-fno-inline'])
    """
    found = []
    for end in REFINED:
        if f"-{end}" in name:
            found.append(end)
            name = name.replace(f"-{end}", "")
    return [name, *found]


def words_of(training: Sequence[str]) -> list[str]:
    """Flags of a kind's name.

    >>> words_of(["O1-fno-inline"]), words_of([])
    (['-O1', '-fno-inline'], [])
    """
    return [f"-{word}" for text in training for word in text.split("-", 1)]


def row(name: str, builds: Builds, chosen: Sequence[str]) -> list[float | None]:
    """Counts and code beside those without a profile, and code beside that with counters."""
    base, other = "gcc" if name.startswith("gcc") else PLAIN, reference(name)
    for each in (base, name, *(each for each in chosen if each == other)):
        builds.count(each)
    pairs = zip(builds.figures[name][-1], builds.figures[base][-1], strict=True)
    counted = (cost / of for cost, of in pairs)
    return [*counted, *(growth(name, each, builds.sizes) for each in (base, other))]


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flags", default="", help="of every build")
    parser.add_argument("--train", default="", help="arguments of the run to learn from")
    parser.add_argument(
        "--arguments", action="append",
        help="of the run to measure (default: the same); of several, the last has no part in "
        "choosing, see shares.py",
    )  # fmt: skip
    parser.add_argument("--period", type=int, default=PERIOD, help="of recordings")
    parser.add_argument("--target", metavar="TRIPLE", help="what clang compiles for, such as "
                        "riscv64-linux-gnu")  # fmt: skip
    parser.add_argument("--builds", nargs="+", default=["*"], help=f"of {', '.join(BUILDS)}")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    flags, train, *measured = map(
        shlex.split, (args.flags, args.train, *(args.arguments or [args.train]))
    )
    folder = args.folder.resolve()
    builds = Builds(Bench(folder, args.sources, flags, train, measured, args.period, args.target))
    print("| build | instructions | taken branches | .text beside -O2 | beside counters |")
    print("| --- | --- | --- | --- | --- |")
    chosen = [name for name in BUILDS if any(fnmatch(name, each) for each in (PLAIN, *args.builds))]
    for name in chosen:
        ratios = row(name, builds, chosen)
        cells = ("" if each is None else f"{each:.3f}" for each in ratios)
        print(f"| {' | '.join((name, *cells))} |", flush=True)


if __name__ == "__main__":
    main()
