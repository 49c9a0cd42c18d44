"""Whether cycles of the simulated front end rank builds as native time does.

``python benchmarks/front_end.py [--model PRESET] [--runs N] FOLDER [--program NAME...] [--kept]``

The programs are those that `fresh.py` met, in a folder of its kind; each is built in the ways of
`RANKED`, which are kept there, and run with the input of its first judging run. Prints a row a
build, with ratios to the program's plain build, and Spearman's rank correlation with time: of
cycles, and of what else could stand for them. Builds that have the same code count once.
Cycles are kept, too: `--no-times` leaves the rest to when the machine has nothing else to do. So
are rows, in `ranked/PRESET.rows.json` of a program's folder: a program is measured anew if it has
builds that are not in its rows, and `--kept` prints what there is, and builds and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from fresh import programs_in
from fresh_builds import expanded
from fresh_programs import Program
from programs_met import MET
from which_profile import INSTRUMENTED, PLAIN, Bench, Builds

from lbr2pgo.pgo.built_code import code_digest
from lbr2pgo.pgo.measure import Candidate, Measured, count
from lbr2pgo.pgo.measurements import measure_programs
from lbr2pgo.pgo.timing import Rounds
from lbr2pgo.recorders.front_end import PRESETS, preset

Ratios = npt.NDArray[np.float64]
RANKED = (
    PLAIN, "lines", "probes", "contexts-O1", INSTRUMENTED,
    *(f"{base}+bolt" for base in (PLAIN, "contexts-O1", INSTRUMENTED)),
    *(f"{base}+propeller" for base in (PLAIN, "contexts-O1-unprobed")),
    *(f"{base}@{level}" for base in (PLAIN, "contexts-O1") for level in ("Os", "O3")),
)  # fmt: skip
"""Of other sizes, too: "@Os" is in place of -O2."""
COSTS = ("cycles", "instructions", "taken", "instructions x taken", "code")


@dataclass(frozen=True, slots=True)
class Row:
    """A build beside the plain one of its program."""

    program: str
    build: str
    time: float
    low: float
    high: float
    costs: dict[str, float]
    """By `COSTS`."""


def builds_of(program: Program) -> list[Path]:
    """In the working directory, the program's: the plain one first, each code once."""
    folder = Path("ranked").absolute()
    folder.mkdir(exist_ok=True)
    flags = shlex.split(program.flags_of_paths() + f" -w {program.libraries}")
    sources, train = list(map(str, program.files())), expanded(program.train[0])
    made = Builds(Bench(folder, sources, flags, train, ()))
    by_code = dict[str, Path]()
    for path in map(made.get, RANKED):
        by_code.setdefault(code_digest(path), path)
    return list(by_code.values())


def cycles_of(builds: Sequence[Path], words: Sequence[str], model: str) -> dict[str, float]:
    """By the model, of each build by its name; kept beside the builds."""
    kept = builds[0].with_name(f"{model}.json")
    known: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    for build in builds:
        if build.name not in known:
            run = count(Candidate(build.name, (str(build), *words)), preset(model))
            assert run.front_end is not None
            known[build.name] = run.front_end.cycles
            kept.write_text(json.dumps(known, indent=1))
    return known


def rows_of(
    program: str, builds: Sequence[Path], words: Sequence[str], cycles: dict[str, float],
    runs: Rounds,
) -> Iterator[Row]:  # fmt: skip
    """Of every build but the plain one."""
    base, *others = measure_programs(list(map(str, builds)), words, runs, None).programs
    for build, each in zip(builds[1:], others, strict=True):
        time = each.time_ratio(base)
        if time is not None:
            costs = _costs(cycles[build.name] / cycles[PLAIN], each, base)
            yield Row(program, build.name, time.median, time.low, time.high, costs)


def kept_rows(file: Path) -> list[Row]:
    """What was measured of a program; nothing if it was not."""
    return [Row(**each) for each in json.loads(file.read_text())] if file.exists() else []


def rows_file(folder: Path, model: str) -> Path:
    """Where a program keeps them."""
    return folder / "ranked" / f"{model}.rows.json"


def measured_rows(program: Program, model: str, runs: Rounds | None) -> list[Row]:
    """Of a program in the working directory; without rounds what is kept, once there are cycles."""
    builds, words = builds_of(program), expanded(program.judged[0])
    cycles = cycles_of(builds, words, model)
    file = rows_file(Path(), model)
    rows = kept_rows(file)
    if runs is not None and {row.build for row in rows} != {each.name for each in builds[1:]}:
        rows = list(rows_of(program.name, builds, words, cycles, runs))
        file.write_text(json.dumps(list(map(asdict, rows)), indent=1))
    return rows


def print_rows(rows: Sequence[Row]) -> None:
    """As they are measured."""
    for row in rows:
        costs = " | ".join(f"{row.costs[name]:.3f}" for name in COSTS)
        print(f"| {row.program} | {row.build} | {row.time:.3f} | {row.low:.3f} to "
              f"{row.high:.3f} | {costs} |", flush=True)  # fmt: skip


def _costs(cycles: float, each: Measured, base: Measured) -> dict[str, float]:
    ratios = {name: ratio or 1.0 for name, ratio in each.count_ratios(base).items()}
    instructions, taken = ratios["instructions"], ratios["taken"]
    code = each.size.text / base.size.text if each.size and base.size else 1.0
    return dict(zip(COSTS, (cycles, instructions, taken, instructions * taken, code), strict=True))


def spearman(a: Ratios, b: Ratios) -> float:
    """The correlation of ranks; equal values share the mean of theirs.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    return float(np.round(np.corrcoef(_ranks(a), _ranks(b))[0, 1], 9))


def _ranks(values: Ratios) -> Ratios:
    _, at, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return (ends - (count - 1) / 2)[at]


def print_correlations(rows: Sequence[Row]) -> None:
    """Of all builds together, and of each program's alone."""
    programs = list(dict.fromkeys(row.program for row in rows))
    print(f"\n| Spearman's rho with time, n = {len(rows)} | all | {' | '.join(programs)} |")
    print(f"| --- | --- |{' --- |' * len(programs)}")
    groups = [rows, *([row for row in rows if row.program == name] for name in programs)]
    for cost in COSTS:
        found = (
            spearman(np.array([r.time for r in group]), np.array([r.costs[cost] for r in group]))
            for group in groups
        )
        print(f"| {cost} | {' | '.join(f'{rho:.2f}' for rho in found)} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="zen4", choices=PRESETS)
    parser.add_argument("--runs", type=int, default=25, help="rounds of native runs")
    parser.add_argument("folder", type=Path)
    names = [program.name for program in MET.programs]
    parser.add_argument("--program", nargs="+", choices=names, default=names)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--no-times", action="store_true", help="build, and take cycles, only")
    how.add_argument("--kept", action="store_true", help="print what was measured before")
    args = parser.parse_args()
    print(f"| program | build | time | 95 % | {' | '.join(COSTS)} |")
    print(f"| --- | --- | --- | --- |{' --- |' * len(COSTS)}")
    found: Iterator[list[Row]]
    if args.kept:
        found = (kept_rows(rows_file(args.folder / name, args.model)) for name in args.program)
    else:
        runs = None if args.no_times else Rounds(args.runs)
        programs = programs_in(args.folder, MET, args.program)
        found = (measured_rows(program, args.model, runs) for program in programs)
    rows: list[Row] = []
    for each in found:
        print_rows(each)
        rows += each
    if rows:
        print_correlations(rows)


if __name__ == "__main__":
    main()
