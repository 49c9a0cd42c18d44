"""What share of the gain of instrumented PGO each kind of profile has, over several programs.

``python benchmarks/shares.py FOLDER... [--builds PATTERN...]`` reads what ``which_profile.py``
counted in each folder.
A share is of what instrumented PGO takes away from the build without a profile, of instructions
and of taken branches; where that is less than a hundredth, there is nothing to have a share of. A
kind that was laid out is compared with the instrumented build that was laid out by the same. The
last row is what a search has of it: chosen on a program's first runs, as many as were measured, and
told, like all shares, of its last one; where there is only one run, nothing can be told.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from statistics import mean

from which_profile import BUILDS, FIGURES, INSTRUMENTED, KINDS, PLAIN

from lbr2pgo.pgo.results import share_saved

SEARCH = "the best for each"

Figures = Mapping[str, Sequence[Sequence[int]]]
"""Instructions and taken branches by build, of each run."""
Shares = tuple[float | None, float | None]


def shares_of(name: str, figures: Figures) -> Shares | None:
    """Of both gains; None where the build is not known."""
    _, plus, layout = name.partition("+")
    reference = f"{INSTRUMENTED}{plus}{layout}"
    if name not in figures or reference not in figures:
        return None
    last = (figures[each][-1] for each in (PLAIN, reference, name))
    instructions, taken = map(share_saved, *last)
    return instructions, taken


def best_of(names: Sequence[str], figures: Figures) -> str:
    """What a search takes: the least product of instructions and taken branches.

    The last run has no part in that. Where there is no other run, a name that no build has.
    """
    known = [name for name in names if name in figures and len(figures[name]) > 1]
    return min(
        known, key=lambda name: math.prod(map(math.prod, figures[name][:-1])), default=SEARCH
    )


def rows(folders: Sequence[Path], patterns: Sequence[str]) -> Iterator[list[str]]:
    """Cells of the table, last the means of what is known of all programs."""
    programs = [json.loads((folder / FIGURES).read_text()) for folder in folders]
    others = PLAIN, INSTRUMENTED, "gcc"
    shown = [name for name in BUILDS if any(fnmatch(name, each) for each in patterns)]
    names = [name for name in shown if not name.startswith(others)]
    choices = [name for name in names if "+" not in name] or names
    for name in [*names, SEARCH]:
        found = [
            shares_of(best_of(choices, each) if name == SEARCH else name, each) for each in programs
        ]
        known = [each for each in found if each is not None]
        if known:
            of_all = tuple(map(mean_of, zip(*known, strict=True)))
            yield [name, *map(cell, found), cell(of_all if len(known) == len(found) else None)]


def mean_of(shares: Sequence[float | None]) -> float | None:
    """Of those that there are."""
    known = [share for share in shares if share is not None]
    return mean(known) if known else None


def cell(shares: Sequence[float | None] | None) -> str:
    """Two shares in per cent."""
    if shares is None:
        return ""
    return " / ".join("-" if share is None else f"{share:.0%}" for share in shares)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--builds", nargs="+", default=[*KINDS, "*+bolt"], help="rows: patterns")
    args = parser.parse_args()
    folders = args.folders
    print(f"| profile | {' | '.join(folder.name for folder in folders)} | mean |")
    print(f"| --- {'| --- ' * len(folders)}| --- |")
    for row in rows(folders, args.builds):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
