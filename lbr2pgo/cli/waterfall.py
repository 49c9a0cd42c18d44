"""The loss waterfall for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Console

from lbr2pgo.model import waterfall
from lbr2pgo.support.printable import printable

_TITLE, _COUNT = 34, 16


def show_losses(tallies: Mapping[str, int], notes: Sequence[str], stream: TextIO) -> None:
    """Print the waterfall, and on stderr what had to be assumed."""
    print_waterfall(tallies, stream)
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def print_waterfall(tallies: Mapping[str, int], stream: TextIO) -> None:
    """Print each step: how many, which share, why others were lost, and what to do about it.

    Of several reasons the first, with the most losses, has its advice; all have their counts.
    """
    console = Console(file=stream, highlight=False, markup=False, soft_wrap=True)
    for row in waterfall.rows(tallies):
        console.print(f"{row.step.title:<{_TITLE}}{row.count:>{_COUNT},}  {_share(row):>9}")
        if row.losses:
            (reason, count), *others = row.losses
            console.print(f"    lost {count:,}: {reason.title}", style="yellow")
            console.print(f"    → {reason.cure}", style="dim")
            for other, count in others:
                console.print(f"    lost {count:,}: {other.title}", style="dim")
    suspicious = tallies.get("runs_suspicious", 0)
    if suspicious:
        console.print(
            f"{suspicious:,} valid fall-throughs run over a call or an indirect jump that was not "
            "logged (--strict rejects them)"
        )


def _share(row: waterfall.Row) -> str:
    if row.share is None:
        return ""
    # A loss must show, however small: 100 % is kept for no loss at all.
    return "100 %" if row.count == row.before else f"{min(row.share * 100, 99.99):.2f} %"
