"""What share of the gain of instrumented PGO each kind of profile has, and how much code.

``python benchmarks/shares.py FOLDER... [--builds PATTERN...]`` reads what ``which_profile.py``
counted in each folder, of a program each.
A share is of what instrumented PGO takes away from the build without a profile, of instructions
and of taken branches; where that is less than a hundredth, there is nothing to have a share of. A
kind that was laid out is compared with the instrumented build that was laid out by the same. The
last row is what a search has of it: chosen on a program's first runs, as many as were measured, and
told, like all shares, of its last one; where there is only one run, nothing can be told. A second
table has the code of each beside that of `-O2` and that of the instrumented build.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import mean

from which_profile import (
    BUILDS,
    FIGURES,
    INSTRUMENTED,
    KINDS,
    PLAIN,
    Sizes,
    growth,
    reference,
    sizes_in,
)

from lbr2pgo.pgo.results import share_saved

SEARCH = "the best for each"

Figures = Mapping[str, Sequence[Sequence[int]]]
"""Instructions and taken branches by build, of each run."""
Pair = tuple[float | None, float | None]
"""Shares of instructions and of taken branches, or code beside that of two builds."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is known of its builds."""

    figures: Figures
    sizes: Sizes


def program_in(folder: Path) -> Program:
    """The one whose builds are there."""
    return Program(json.loads((folder / FIGURES).read_text()), sizes_in(folder))


def shares_of(name: str, program: Program) -> Pair | None:
    """Of both gains; None where the build is not known."""
    figures, other = program.figures, reference(name)
    if name not in figures or other not in figures:
        return None
    last = (figures[each][-1] for each in (PLAIN, other, name))
    instructions, taken = map(share_saved, *last)
    return instructions, taken


def code_of(name: str, program: Program) -> Pair | None:
    """Beside that without a profile, and that with counters; None where the build is not known."""
    plain, counters = (growth(name, base, program.sizes) for base in (PLAIN, reference(name)))
    return None if plain is None else (plain, counters)


def best_of(names: Sequence[str], figures: Figures) -> str:
    """What a search takes: the least product of instructions and taken branches.

    The last run has no part in that. Where there is no other run, a name that no build has.
    """
    known = [name for name in names if name in figures and len(figures[name]) > 1]
    return min(
        known, key=lambda name: math.prod(map(math.prod, figures[name][:-1])), default=SEARCH
    )


def rows(
    programs: Sequence[Program],
    patterns: Sequence[str],
    tell: Callable[[str, Program], Pair | None] = shares_of,
    form: str = "{:.0%}",
) -> Iterator[list[str]]:
    """Cells of a table, last the means of what is known of all programs."""
    others = PLAIN, INSTRUMENTED, "gcc"
    shown = [name for name in BUILDS if any(fnmatch(name, each) for each in patterns)]
    names = [name for name in shown if not name.startswith(others)]
    choices = [name for name in names if "+" not in name] or names
    for name in [*names, SEARCH]:
        found = [
            tell(best_of(choices, each.figures) if name == SEARCH else name, each)
            for each in programs
        ]
        known = [each for each in found if each is not None]
        if known:
            of_all = tuple(map(mean_of, zip(*known, strict=True)))
            means = of_all if len(known) == len(found) else None
            yield [name, *(cell(each, form) for each in (*found, means))]


def mean_of(values: Sequence[float | None]) -> float | None:
    """Of those that there are."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def cell(pair: Sequence[float | None] | None, form: str) -> str:
    """Both in such a form."""
    if pair is None:
        return ""
    return " / ".join("-" if value is None else form.format(value) for value in pair)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--builds", nargs="+", default=[*KINDS, "*+bolt"], help="rows: patterns")
    args = parser.parse_args()
    programs = list(map(program_in, args.folders))
    heading = f"{' | '.join(folder.name for folder in args.folders)} | mean"
    for title, tell, form in (
        ("profile", shares_of, "{:.0%}"),
        (".text beside -O2 / beside counters", code_of, "{:.3f}"),
    ):
        print(f"\n| {title} | {heading} |\n| --- {'| --- ' * len(programs)}| --- |")
        for row in rows(programs, args.builds, tell, form):
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
