"""What `lbr2pgo pgo` has of instrumentation's gain, on programs that nobody had looked at before.

``python benchmarks/fresh.py [--group met4] FOLDER [--program NAME...] [--no-times]``

The rule for the group is in `programs_fresh.py`, which is replaced for each release: rules of `pgo`
that are made after looking at its programs make them ones that were met, which are those of
`programs_met.py` and `programs_met2.py` to `programs_met4.py`. They and their inputs are written
down before the first of them is profiled, and none is left out for its result.

Each is built three times at -O2 by clang 22: plainly, with the counters of an instrumented build,
and by `lbr2pgo pgo` as it is if it is told nothing (what it would measure is left out). Both learn
from the same runs. Three runs on other input judge: instructions and taken branches are exact
counts, user times are taken in turns. A share is of what counters take away from the plain build,
in the geometric mean over the three runs; "-" where that is less than a hundredth. FOLDER, one a
group, keeps sources, builds and figures: what is there is not made again. `--no-times` leaves times
to when the machine has nothing else to do; a later call adds them. It wants clang 22, make, npm and
Debian's source packages (a line deb-src).

With --sizes, what counters gain is counted with and without the sizes of memory that is copied and
set, which they know and no sample of branches does.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean, mean, stdev

import numpy as np
from fresh_programs import SOURCES, Group, Program
from programs_fresh import FRESH
from programs_met import MET
from programs_met2 import MET2
from programs_met3 import MET3
from programs_met4 import MET4
from which_profile import FIGURES, INSTRUMENTED, LBR2PGO, PLAIN, call

from lbr2pgo.pgo.measure import Candidate, Measured, text_size, user_time
from lbr2pgo.pgo.measurements import measure_programs
from lbr2pgo.pgo.results import share_saved
from lbr2pgo.pgo.timing import (
    FEWEST_RUNS,
    NOT_TIMED,
    Interval,
    Rounds,
    median_interval,
    time_in_turns,
)
from lbr2pgo.support.arrays import F64

SAMPLED = "sampled"
BUILDS = (PLAIN, INSTRUMENTED, SAMPLED)
UNSIZED = "unsized"
COUNTED = (PLAIN, INSTRUMENTED, UNSIZED)
ROUNDS = 25
MAKEFILE = """\
CC = clang-22
CXX = clang++-22
CPPFLAGS = -w {flags}
app: {objects}
\t{linker} $(LDFLAGS) -o $@ $^ {libraries}
%.o: %.cxx
\t$(COMPILE.cc) -o $@ $<
"""
GROUPS = {"fresh": FRESH, "met": MET, "met2": MET2, "met3": MET3, "met4": MET4}
MAKE = f"make -B -j{len(os.sched_getaffinity(0))}"


@dataclass(frozen=True, slots=True)
class Run:
    """What a build costs on one input."""

    instructions: int
    taken: int
    seconds: Sequence[float]
    """User time of each round, if it was timed."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one program."""

    program: str
    text: dict[str, int]
    """Bytes of code of each build."""
    runs: Sequence[dict[str, Run]]
    """Of each judging input, by build."""

    def cost(self, build: str, of: str) -> float:
        """Of instructions or taken branches, those of the plain build as 1."""
        return geometric_mean(
            getattr(run[build], of) / getattr(run[PLAIN], of) for run in self.runs
        )

    def share(self, of: str) -> float | None:
        """What pgo has of what counters take away; None where that is less than a hundredth."""
        return share_saved(1, self.cost(INSTRUMENTED, of), self.cost(SAMPLED, of))

    def size(self, beside: str) -> float:
        """Of pgo's code, beside that of another build."""
        return self.text[SAMPLED] / self.text[beside]

    @property
    def is_timed(self) -> bool:
        """Whether it has times."""
        return all(run.seconds for runs in self.runs for run in runs.values())

    def time(self, beside: str) -> Interval | None:
        """Of pgo's user time: of a round, the geometric mean over the inputs; None if not timed."""
        if not self.is_timed:
            return None
        ratios = [np.array(run[SAMPLED].seconds) / run[beside].seconds for run in self.runs]
        rounds: F64 = np.exp(np.mean(np.log(ratios), axis=0))
        return median_interval(rounds)


class Study:
    """One program, in the working directory: its builds and figures."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.train, self.judged = (
            [expanded(words) for words in runs] for runs in (program.train, program.judged)
        )

    def figures(self, rounds: int) -> Figures:
        """Counted, and if there are rounds timed, unless that was done."""
        file = Path(FIGURES)
        found = loaded(file) if file.exists() else self._counted()
        if rounds and not found.is_timed:
            timed = zip(found.runs, self.judged, strict=True)
            found = replace(found, runs=[self._timed(runs, words, rounds) for runs, words in timed])
        file.write_text(json.dumps(asdict(found), indent=1))
        return found

    def sizes(self) -> list[str]:
        """What is left of the plain build's instructions and taken branches, by counters."""
        self.build(COUNTED)
        programs = [f"./{build}" for build in COUNTED]
        runs = [
            measure_programs(programs, words, NOT_TIMED, None).programs for words in self.judged
        ]
        return [self._program.name, *(
            f"{geometric_mean(_ratio(run[build], run[0], of) for run in runs):.4f}"
            for build in (1, 2) for of in COUNTS
        )]  # fmt: skip

    def build(self, builds: Sequence[str]) -> None:
        """What of them is not there."""
        self._write_makefile()
        builders = {
            PLAIN: self._build_plainly, INSTRUMENTED: self._build_instrumented,
            SAMPLED: self._build_sampled, UNSIZED: self._build_unsized,
        }  # fmt: skip
        for build in builds:
            if not Path(build).exists():
                builders[build]()
                shutil.move("app", build)

    def _write_makefile(self) -> None:
        files = self._program.files()
        is_plus = any(file.suffix in (".cc", ".cpp", ".cxx") for file in files)
        text = MAKEFILE.format(
            flags=self._program.flags_of_paths(),
            objects=" ".join(str(file.with_suffix(".o")) for file in files),
            linker="$(CXX)" if is_plus else "$(CC)",
            libraries=self._program.libraries,
        )
        Path("Makefile").write_text(text)

    def _build_plainly(self) -> None:
        made("")

    def _build_instrumented(self) -> None:
        counters = Path("counters").absolute()
        made(f"-fprofile-generate={counters}")
        for words in self.train:
            call("./app", *words)
        call("llvm-profdata-22", "merge", "-o", "counters.profdata", counters)
        made(f"-fprofile-use={Path('counters.profdata').absolute()}")

    def _build_unsized(self) -> None:
        made(f"-fprofile-use={Path('counters.profdata').absolute()} -mllvm -disable-memop-opt")

    def _build_sampled(self) -> None:
        commands = [shlex.join(["./app", *words]) for words in self.train]
        train = [word for each in commands for word in ("--train", each)]
        built = "--build", MAKE, "--binary", "app", "--work", "pgo"
        with Path("pgo.log").open("wb") as log:
            words = (*LBR2PGO, "pgo", *built, *train, "--to-step", "rebuild")
            subprocess.run(words, check=True, stdout=log, stderr=log, env=environment(""))

    def _counted(self) -> Figures:
        self.build(BUILDS)
        runs = [self._count(words) for words in self.judged]
        return Figures(
            self._program.name, {build: text_size(Path(build)) for build in BUILDS}, runs
        )

    def _count(self, words: Sequence[str]) -> dict[str, Run]:
        found = measure_programs([f"./{build}" for build in BUILDS], words, NOT_TIMED, None)
        for each in found.programs:
            if each.counted.exit_code or each.counted.output != found.programs[0].counted.output:
                raise SystemExit(f"{self._program.name}: {each.name} does other work: {words}")
        return dict(zip(BUILDS, map(run_of, found.programs), strict=True))

    def _timed(self, runs: dict[str, Run], words: Sequence[str], rounds: int) -> dict[str, Run]:
        builds = [Candidate(build, (f"./{build}", *words)) for build in BUILDS]
        times = time_in_turns(
            lambda number: user_time(builds[number], 0), len(builds), Rounds(rounds)
        )
        return {
            build: replace(runs[build], seconds=each.tolist())
            for build, each in zip(BUILDS, times.T, strict=True)
        }


def expanded(words: str) -> list[str]:
    """As a shell would: folders of sources, braces and patterns."""
    command = f"S={SOURCES}; printf '%s\\0' {words}"
    return call("bash", "-c", command).decode().split("\0")[:-1]


def environment(flags: str) -> dict[str, str]:
    """Of a build; without flags, of one whose flags `lbr2pgo pgo` gives."""
    own = {key: text for key, text in os.environ.items() if key not in ("CFLAGS", "CXXFLAGS")}
    return own | (dict.fromkeys(("CFLAGS", "CXXFLAGS", "LDFLAGS"), flags) if flags else {})


def made(flags: str) -> None:
    """Build by make."""
    subprocess.run(
        MAKE.split(), check=True, stdout=subprocess.DEVNULL, env=environment(f"-O2 {flags}")
    )


def run_of(measured: Measured) -> Run:
    """What is kept of it."""
    totals = measured.counted.totals
    return Run(totals.instructions, totals.taken, [])


def _ratio(measured: Measured, base: Measured, of: str) -> float:
    return float(getattr(measured.counted.totals, of) / getattr(base.counted.totals, of))


def loaded(file: Path) -> Figures:
    """Figures that were kept."""
    told = json.loads(file.read_text())
    runs = [{build: Run(**run) for build, run in runs.items()} for runs in told["runs"]]
    return Figures(told["program"], told["text"], runs)


HEADINGS = (
    "program", "counters save", "pgo's share: instructions", "taken branches",
    ".text beside -O2", "beside counters", "user time beside -O2", "beside counters",
)  # fmt: skip
SIZES = "program", "instructions", "taken branches", "without sizes", "taken branches"
COUNTS = "instructions", "taken"
OTHERS = PLAIN, INSTRUMENTED


def rows(found: Sequence[Figures]) -> Iterator[list[str]]:
    """Cells of the table, a row a program; last the means, and the worst."""
    for each in found:
        saved = " / ".join(f"{1 - each.cost(INSTRUMENTED, of):.1%}" for of in COUNTS)
        shares = [percent(each.share(of)) for of in COUNTS]
        sizes = [f"{each.size(other):.3f}" for other in OTHERS]
        yield [each.program, saved, *shares, *sizes, *(interval(each.time(of)) for of in OTHERS)]
    shares = [summary([each.share(of) for each in found]) for of in COUNTS]
    sizes = [worst([each.size(other) for each in found]) for other in OTHERS]
    medians = [
        worst([time.median for each in found if (time := each.time(other))]) for other in OTHERS
    ]
    yield ["mean ± deviation (lowest share, highest ratio)", "", *shares, *sizes, *medians]


def percent(share: float | None) -> str:
    """A share, or that there is none."""
    return "-" if share is None else f"{share:.0%}"


def interval(ratio: Interval | None) -> str:
    """A median, and where the true one is, if there is one."""
    return "-" if ratio is None else f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def summary(shares: Sequence[float | None]) -> str:
    """The mean, the standard deviation and the lowest of those that there are."""
    known = [share for share in shares if share is not None]
    if not known:
        return "-"
    spread = f" ± {stdev(known):.0%}" if len(known) > 1 else ""
    return f"{mean(known):.0%}{spread} ({min(known):.0%})"


def worst(ratios: Sequence[float]) -> str:
    """The geometric mean and the highest of those that there are."""
    return f"{geometric_mean(ratios):.3f} ({max(ratios):.3f})" if ratios else "-"


def programs_in(folder: Path, group: Group, names: Sequence[str]) -> Iterator[Program]:
    """Those of these names, each in its own folder, which is the working directory until the next.

    Sources and inputs are fetched and made if they are not there.
    """
    folder = folder.resolve()
    sources = folder / SOURCES.name
    sources.mkdir(parents=True, exist_ok=True)
    os.chdir(sources)
    for package in group.packages:
        package.fetch()
    os.chdir(folder)
    group.make_inputs()
    for program in group.programs:
        if program.name in names:
            (folder / program.name).mkdir(exist_ok=True)
            os.chdir(folder / program.name)
            yield program


def main() -> None:
    """Fetch, build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--group", choices=GROUPS, default="fresh", help="fresh if not given")
    names = [program.name for group in GROUPS.values() for program in group.programs]
    parser.add_argument("--program", nargs="+", choices=names, default=names)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="time as few rounds as may be")
    how.add_argument("--no-times", action="store_true", help="build and count only")
    how.add_argument("--sizes", action="store_true", help="count what sizes of copies gain")
    args = parser.parse_args()
    chosen = map(Study, programs_in(args.folder, GROUPS[args.group], args.program))
    if args.sizes:
        table = [SIZES, *(study.sizes() for study in chosen)]
    else:
        rounds = 0 if args.no_times else FEWEST_RUNS if args.quick else ROUNDS
        table = [HEADINGS, *rows([study.figures(rounds) for study in chosen])]
    for row in (table[0], ["---"] * len(table[0]), *table[1:]):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
