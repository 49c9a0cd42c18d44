"""Whether cycles of the simulated front end rank builds as native time does.

``python benchmarks/front_end.py [--model PRESET] [--runs N] FOLDER=ARGUMENTS...``, each folder one
of `which_profile.py`'s, whose builds are run with these arguments. Prints a row a build, with
ratios to the program's plain build, and Spearman's rank correlation with time: of cycles, and of
what else could stand for them. Builds that have the same code count once.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from which_profile import BUILDS

from lbr2pgo.pgo.built_code import code_digest
from lbr2pgo.pgo.measure import Measured
from lbr2pgo.pgo.measurements import measure_programs
from lbr2pgo.pgo.timing import Rounds
from lbr2pgo.recorders.front_end import PRESETS

Ratios = npt.NDArray[np.float64]
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


def builds_of(folder: Path) -> list[Path]:
    """The plain one first, each code once."""
    found = (folder / name for name in BUILDS)
    by_code = {code_digest(path): path for path in reversed([p for p in found if p.exists()])}
    return list(reversed(by_code.values()))


def rows_of(folder: Path, arguments: Sequence[str], runs: Rounds, model: str) -> Iterator[Row]:
    """Of every build but the plain one."""
    builds = builds_of(folder)
    base, *others = measure_programs(
        list(map(str, builds)), arguments, runs, None, None, model
    ).programs
    for build, each in zip(builds[1:], others, strict=True):
        time = each.time_ratio(base)
        if time is not None:
            interval = time.median, time.low, time.high
            yield Row(folder.name, build.name, *interval, _costs(each, base))


def _costs(each: Measured, base: Measured) -> dict[str, float]:
    ratios = {name: ratio or 1.0 for name, ratio in each.count_ratios(base).items()}
    instructions, taken = ratios["instructions"], ratios["taken"]
    code = each.size.text / base.size.text if each.size and base.size else 1.0
    cycles = each.cycle_ratio(base) or 1.0
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
    parser.add_argument("--runs", type=int, default=15, help="rounds of native runs")
    parser.add_argument("programs", nargs="+", metavar="FOLDER=ARGUMENTS")
    args = parser.parse_args()
    print(f"| program | build | time | 95 % | {' | '.join(COSTS)} |")
    print(f"| --- | --- | --- | --- |{' --- |' * len(COSTS)}")
    rows: list[Row] = []
    for text in args.programs:
        folder, _, words = text.partition("=")
        for row in rows_of(Path(folder), shlex.split(words), Rounds(args.runs), args.model):
            rows.append(row)
            costs = " | ".join(f"{row.costs[name]:.3f}" for name in COSTS)
            print(
                f"| {row.program} | {row.build} | {row.time:.3f} | {row.low:.3f} to "
                f"{row.high:.3f} | {costs} |", flush=True,
            )  # fmt: skip
    print_correlations(rows)


if __name__ == "__main__":
    main()
