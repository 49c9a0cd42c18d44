"""What `lbr2pgo pgo` has of instrumentation's gain, on programs that nobody had looked at before.

``python benchmarks/fresh.py [--group met4] FOLDER [--program NAME...] [--no-times]
[--layout bolt propeller...] [--runs N]``

The rule for the group is in `programs_fresh.py`, which is replaced for each release: rules of `pgo`
that are made after looking at its programs make them ones that were met, which are those of
`programs_met.py` and `programs_met2.py` to `programs_met4.py`. They and their inputs are written
down before the first of them is profiled, and none is left out for its result.

Each is built three times at -O2 by clang 22: plainly, with the counters of an instrumented build,
and by `lbr2pgo pgo` as it is if it is told nothing (what it would measure is left out). Both learn
from the same runs. Three runs on other input judge: instructions and taken branches are exact
counts, user times are taken in turns. A share is of what counters take away from the plain build,
in the geometric mean over the three runs; "-" where that is less than a hundredth. Of times, p is
the chance of so many rounds on one side if both builds are equally fast (sign test). FOLDER, one a
group, keeps sources, builds and figures: what is there is not made again. `--no-times` leaves times
to when the machine has nothing else to do; a later call adds them. It wants clang 22, make, npm and
Debian's source packages (a line deb-src).

With --layout, the same is told of builds that are laid out on top, and each layout of pgo's build
beside that build (`fresh_layouts.py`). All builds are timed in the same rounds, so layouts that are
to be compared are asked for together.

With --sizes, what counters gain is counted with and without the sizes of memory that is copied and
set, which they know and no sample of branches does.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import fresh_layouts
from fresh_builds import UNSIZED, ProgramBuilds, expanded
from fresh_figures import (
    BUILDS,
    COUNTS,
    HEADINGS,
    Figures,
    Run,
    left,
    loaded,
    print_table,
    rows,
)
from fresh_layouts import KEPT, LAYOUTS, builds_of, laid_out, lay_out
from fresh_programs import SOURCES, Group, Program
from programs_fresh import FRESH
from programs_met import MET
from programs_met2 import MET2
from programs_met3 import MET3
from programs_met4 import MET4
from which_profile import FIGURES, INSTRUMENTED, PLAIN

from lbr2pgo.pgo.code_size import text_size
from lbr2pgo.pgo.measure import Candidate, Measured, user_time
from lbr2pgo.pgo.measurements import measure_programs
from lbr2pgo.pgo.timing import NOT_TIMED, Rounds, time_in_turns

COUNTED = (PLAIN, INSTRUMENTED, UNSIZED)
GROUPS = {"fresh": FRESH, "met": MET, "met2": MET2, "met3": MET3, "met4": MET4}


class Study:
    """One program, in the working directory: its builds and figures."""

    def __init__(self, program: Program) -> None:
        self._program, self._builds = program, ProgramBuilds(program)
        self._judged = [expanded(words) for words in program.judged]

    def figures(self, runs: Rounds, layouts: Sequence[str] = ()) -> Figures:
        """Counted and timed, unless that was done; those of layouts apart."""
        file, builds = Path(KEPT if layouts else FIGURES), (*BUILDS, *builds_of(layouts))
        none = Figures(self._program.name, {}, [{} for _ in self._judged])
        found = self._counted(loaded(file) if file.exists() else none, builds)
        found.keep(file)
        if runs != NOT_TIMED and not found.are_timed(builds):
            timed = zip(found.runs, self._judged, strict=True)
            found = replace(found, runs=[_timed(known, words, runs) for known, words in timed])
            found.keep(file)
        return found

    def sizes(self) -> list[str]:
        """What is left of the plain build's instructions and taken branches, by counters."""
        self._builds.build(COUNTED)
        programs = [f"./{build}" for build in COUNTED]
        runs = [
            measure_programs(programs, words, NOT_TIMED, None).programs for words in self._judged
        ]
        return [self._program.name, *(
            f"{geometric_mean(_ratio(run[build], run[0], of) for run in runs):.4f}"
            for build in (1, 2) for of in COUNTS
        )]  # fmt: skip

    def _counted(self, found: Figures, builds: Sequence[str]) -> Figures:
        """With those of the builds that are not counted."""
        lacking = [build for build in builds if build not in found.text]
        if not lacking:
            return found
        self._builds.build(BUILDS)
        for build in lacking:
            lay_out(self._builds, build)
        text = {build: text_size(Path(build)) for build in lacking}
        runs = [
            known | self._count(lacking, words)
            for known, words in zip(found.runs, self._judged, strict=True)
        ]
        return replace(found, text=found.text | text, runs=runs)

    def _count(self, builds: Sequence[str], words: Sequence[str]) -> dict[str, Run]:
        names = list(dict.fromkeys((PLAIN, *builds)))
        found = measure_programs([f"./{each}" for each in names], words, NOT_TIMED, None)
        for each in found.programs:
            if each.counted.exit_code or each.counted.output != found.programs[0].counted.output:
                raise SystemExit(f"{self._program.name}: {each.name} does other work: {words}")
        runs = dict(zip(names, map(run_of, found.programs), strict=True))
        return {build: runs[build] for build in builds}


def _timed(known: dict[str, Run], words: Sequence[str], runs: Rounds) -> dict[str, Run]:
    builds = [Candidate(build, (f"./{build}", *words)) for build in known]
    times = time_in_turns(lambda number: user_time(builds[number], 0), len(builds), runs)
    return {
        build: replace(known[build], seconds=each.tolist())
        for build, each in zip(known, times.T, strict=True)
    }


def run_of(measured: Measured) -> Run:
    """What is kept of it."""
    totals = measured.counted.totals
    pages = measured.size.hot_pages if measured.size else 0
    return Run(totals.instructions, totals.taken, [], pages)


def _ratio(measured: Measured, base: Measured, of: str) -> float:
    return float(getattr(measured.counted.totals, of) / getattr(base.counted.totals, of))


SIZES = "program", "instructions", "taken branches", "without sizes", "taken branches"


def print_judged(found: Sequence[Figures]) -> None:
    """What pgo has of counters' gain."""
    print_table([HEADINGS, *rows(found)])
    print(f"\n{left(found)}")


def print_layouts(found: Sequence[Figures], layouts: Sequence[str]) -> None:
    """The same table of each that counters have, too, and one of all."""
    for name in layouts:
        if LAYOUTS[name].is_usual:
            print(f"\nBoth with {name} on top:\n")
            print_judged([laid_out(each, name) for each in found])
    print("\nBeside pgo's build without a layout:\n")
    print_table([fresh_layouts.HEADINGS, *fresh_layouts.rows(found, layouts)])


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
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, default=(), help="on top")
    parser.add_argument("--runs", type=int, default=25, help="rounds of native runs")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--no-times", action="store_true", help="build and count only")
    how.add_argument("--sizes", action="store_true", help="count what sizes of copies gain")
    args = parser.parse_args()
    chosen = map(Study, programs_in(args.folder, GROUPS[args.group], args.program))
    if args.sizes:
        print_table([SIZES, *(study.sizes() for study in chosen)])
        return
    runs = NOT_TIMED if args.no_times else Rounds(args.runs)
    found = [study.figures(runs, args.layout) for study in chosen]
    print_judged(found)
    if args.layout:
        print_layouts(found, args.layout)


if __name__ == "__main__":
    main()
