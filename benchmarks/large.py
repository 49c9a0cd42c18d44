"""What profiles gain on large C++ programs: contexts beside probes, counters and llvm-profgen.

``python benchmarks/large.py FOLDER [--program NAME...] [--kind NAME...] [--covered SHARE]``

A PDF renderer (pdftoppm), a database (RocksDB) and four programs of compilers (LLVM's passes,
clang's frontend, mlir-opt, and lld as it compiles what it links) from Debian's source packages,
built at -O2 by clang 22. One run of that build is recorded, and all profiles are made of
this recording, or of one of an -O1 build as `lbr2pgo pgo` trains (contexts-O1-overwritten: all as
it does by default, but for the files); counters run with the same input.
Judged by exact counts on the training input itself and on two others.

A program of this size is not built anew for each profile: only the files that hold 70 % of the
branches that the recorded run took or passed are compiled again, with whatever profile, counters
too; all others are as without a profile. What hardly runs has little part in what is counted. The
share is of what counters take away, of instructions and of taken branches, in the geometric mean
over the judged inputs ("-" where that is less than a hundredth); sizes are what `.text` has more
than the plain build's, and than that with counters. FOLDER keeps sources, builds and figures: what
is there is not made again. It wants clang 22, llvm-profgen 22, CMake, Ninja, npm, Debian's source
packages (a line deb-src), what poppler is built with (apt-get build-dep poppler), and the static
libraries of the others (librocksdb-dev, llvm-14-dev, libclang-14-dev, libmlir-14-dev,
liblld-14-dev, libpolly-14-dev; and mlir-14-tools, and clang-14, which compiles inputs).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory

from fresh_builds import expanded
from fresh_figures import percent
from large_inputs import make_inputs
from large_programs import PACKAGES, PROGRAMS, Large
from part_builds import PartBuild
from which_profile import FIGURES, INSTRUMENTED, LBR2PGO, PLAIN, call

from lbr2pgo.pgo.code_size import text_size
from lbr2pgo.pgo.flags import KEPT_CALLS, OVERWRITTEN
from lbr2pgo.pgo.kinds import TRAINING_FLAGS
from lbr2pgo.pgo.measure import Candidate, count, count_exactly
from lbr2pgo.pgo.results import share_saved
from lbr2pgo.pgo.thread_locals import inlined_wrappers
from lbr2pgo.program.elf.image import Image

HERE = Path(__file__).parent
WHOLE = "whole"
PERIOD = 499
"""Taken branches from sample to sample."""
UNPROBED = "-fno-pseudo-probe-for-profiling"
TRAINING = "training"
"""The build that is only recorded."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a profile is made, and used."""

    name: str
    convert: Sequence[str] = ()
    """Options of `lbr2pgo convert`."""
    profgen: Sequence[str] | None = None
    """Those of llvm-profgen, which makes it then."""
    recorded: str = PLAIN
    """The build."""
    flags: Sequence[str] = ()
    """Of the build that uses it."""
    calls_wrappers: bool = False
    """As clang does unasked: see `lbr2pgo.pgo.thread_locals`."""


KINDS = (
    Kind("lines", ("--probes", "off", "--contexts", "off"), flags=(UNPROBED,)),
    Kind("probes", ("--contexts", "off")),
    Kind("contexts", ("--contexts", "nested")),
    Kind("contexts-overwritten", ("--contexts", "nested"), flags=OVERWRITTEN),
    Kind("contexts-called", ("--contexts", "nested"), calls_wrappers=True),
    Kind("contexts-1", ("--contexts", "nested", "--max-context-depth", "1")),
    Kind(
        "contexts-1-overwritten", ("--contexts", "nested", "--max-context-depth", "1"),
        flags=OVERWRITTEN,
    ),
    Kind("contexts-full", ("--contexts", "full")),
    Kind("profgen", profgen=()),
    Kind("profgen-probes", profgen=("--ignore-stack-samples",)),
    Kind("contexts-O1", ("--contexts", "nested"), recorded=TRAINING),
    Kind(
        "contexts-O1-overwritten",
        ("--contexts", "nested", "--llvm-format", "extbinary", "--cold-symbols"),
        recorded=TRAINING, flags=OVERWRITTEN,
    ),
    Kind("probes-O1", ("--contexts", "off"), recorded=TRAINING),
)  # fmt: skip
NAMES = (*(kind.name for kind in KINDS), INSTRUMENTED)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one build."""

    text: int
    """Bytes of code."""
    runs: Sequence[Sequence[int]]
    """Instructions and taken branches, of the training input first."""
    outputs: Sequence[str]
    """Digests of what it wrote."""


class Study:
    """One program, in the working directory: its builds and figures."""

    def __init__(self, program: Large, covered: float) -> None:
        self._program, self._covered = program, covered
        driver = program.driver and HERE / "programs" / "large" / program.driver
        libraries = expanded(program.libraries) if program.libraries else []
        self._build = PartBuild(Path("base"), program.target, driver, libraries)
        self._drivers = [f"{driver.name}.o"] if driver else []
        self._train, *self._judged = map(expanded, (program.train, *program.judged))

    def prepare(self) -> None:
        """Build what is shared, and say what of it runs."""
        program = self._program
        source = Path("../sources", program.source or program.name)
        self._build.configure(source, program.options, program.generated)
        hot, files = self.hot(), self._build.compilations
        print(f"{program.name}: {functions(Path(WHOLE)):,} functions, {len(hot)} of "
              f"{len(files)} files compiled again", flush=True)  # fmt: skip

    def hot(self) -> list[str]:
        """Objects that are compiled again."""
        kept = Path("hot.json")
        if not kept.exists():
            self._whole()
            command = f"./{WHOLE}", *self._train
            with TemporaryDirectory() as folder:
                ((_, counts),) = count_exactly([Candidate(WHOLE, command)], Path(folder))
                found = self._build.hot_objects(Path(WHOLE), counts, self._covered)
            hot = [name for name in found if Path(name).name not in self._program.kept]
            kept.write_text(json.dumps([*dict.fromkeys([*hot, *self._drivers])], indent=1))
        found = json.loads(kept.read_text())
        assert isinstance(found, list)
        return found

    def figures(self, name: str) -> Figures:
        """Of a build, measured unless that was done."""
        file = Path(FIGURES)
        told = json.loads(file.read_text()) if file.exists() else {}
        if name not in told:
            self._make(name)
            words = [(f"./{name}", *run) for run in (self._train, *self._judged)]
            counted = [count(Candidate(name, run)) for run in words]
            told[name] = {
                "text": text_size(Path(name)),
                "runs": [[each.totals.instructions, each.totals.taken] for each in counted],
                "outputs": [f"{each.exit_code} {each.output}" for each in counted],
            }
            file.write_text(json.dumps(told, indent=1))
        return Figures(**told[name])

    def _make(self, name: str) -> None:
        if name == PLAIN:
            self._rebuild(name)
        elif name == INSTRUMENTED:
            self._rebuild(name, UNPROBED, f"-fprofile-use={self._counters()}")
        else:
            (kind,) = (kind for kind in KINDS if kind.name == name)
            wrappers = () if kind.calls_wrappers else inlined_wrappers(Image.open(PLAIN))
            use = f"-fprofile-sample-use={self._profile(kind)}"
            self._rebuild(name, use, *kind.flags, *wrappers)

    def _whole(self) -> None:
        """All that is shared, linked."""
        self._build.link(Path(WHOLE), self._build.compile(self._drivers, Path(f"{WHOLE}.o")))

    def _rebuild(self, name: str, *flags: str) -> None:
        if not Path(name).exists():
            made = self._build.compile(self.hot(), Path(f"{name}.o"), *flags)
            linked = [flag for flag in flags if flag.startswith("-fprofile-generate")]
            self._build.link(Path(name), made, linked)

    def _profile(self, kind: Kind) -> Path:
        out = Path(f"{kind.name}.prof").absolute()
        program = self._recorded(kind.recorded)
        if not out.exists():
            if kind.profgen is None:
                told = "--binary", program, "--llvm", out, *kind.convert
                call(*LBR2PGO, "convert", f"{program}.data", *told)
            else:
                told = f"--perfdata={program}.data", f"--binary={program}", f"--output={out}"
                call("llvm-profgen-22", "--format=text", *told, *kind.profgen)
        return out

    def _recorded(self, name: str) -> str:
        """The build whose run is recorded in the file of its name and ".data"."""
        if not Path(f"{name}.data").exists():
            self._rebuild(name, *((*KEPT_CALLS, *TRAINING_FLAGS) if name == TRAINING else ()))
            told = "--call-graph", "-c", PERIOD, "-o", f"{name}.data", "--", f"./{name}"
            call(*LBR2PGO, "record", "--emulate", *told, *self._train)
        return name

    def _counters(self) -> Path:
        profile = Path("counters.profdata").absolute()
        if not profile.exists():
            raw = Path("counters").absolute()
            self._rebuild("counting", UNPROBED, f"-fprofile-generate={raw}")
            call("./counting", *self._train)
            call("llvm-profdata-22", "merge", "-o", profile, raw)
        return profile


def functions(program: Path) -> int:
    """How many a program has, by its symbols."""
    symbols = call("llvm-nm-22", "--defined-only", program).decode().splitlines()
    return len({line.split()[0] for line in symbols if line.split()[1] in "tTwW"})


HEADINGS = (
    "program", "profile", "instructions: others", "taken branches: others",
    "instructions: training", "taken branches: training", ".text beside -O2, KB",
    "beside counters, KB",
)  # fmt: skip


def row(found: dict[str, Figures], name: str) -> list[str]:
    """Cells of one profile: shares of what counters take away, and sizes."""
    own, plain, other = (found[each] for each in (name, PLAIN, INSTRUMENTED))
    runs = slice(1, None), slice(0, 1)
    shares = [
        share_saved(1, cost(other, plain, part, of), cost(own, plain, part, of))
        for part in runs
        for of in range(2)
    ]
    sizes = [f"{(own.text - base.text) / 1000:+,.1f}" for base in (plain, other)]
    doubt = "" if own.outputs == plain.outputs else " (does other work)"
    return [f"{name}{doubt}", *map(percent, shares), *sizes]


def cost(own: Figures, plain: Figures, part: slice, of: int) -> float:
    """Of instructions (0) or taken branches (1) in some runs, those of the plain build as 1."""
    pairs = zip(own.runs[part], plain.runs[part], strict=True)
    return geometric_mean(run[of] / base[of] for run, base in pairs)


def rows(program: Large, kinds: Sequence[str], covered: float) -> Iterator[list[str]]:
    """Cells of a program's table, a row a profile."""
    (folder := Path(program.name)).mkdir(exist_ok=True)
    os.chdir(folder)
    study = Study(program, covered)
    study.prepare()
    found = {name: study.figures(name) for name in (PLAIN, INSTRUMENTED)}
    for name in kinds:
        found[name] = study.figures(name)
        yield [program.name, *row(found, name)]
    os.chdir("..")


def main() -> None:
    """Fetch, build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--program", nargs="+", choices=names, default=names)
    parser.add_argument("--kind", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument(
        "--covered", type=float, default=0.7, help="share of branches in files compiled again"
    )
    args = parser.parse_args()
    sources = args.folder.resolve() / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    os.chdir(sources)
    for package in PACKAGES:
        package.fetch()
    os.chdir("..")
    make_inputs()
    for program in PROGRAMS:
        if program.name in args.program:
            print(f"\n| {' | '.join(HEADINGS)} |\n{'| --- ' * len(HEADINGS)}|")
            for cells in rows(program, args.kind, args.covered):
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
