"""The loss waterfall for people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from lbr2pgo.cli import messages
from lbr2pgo.model import waterfall
from lbr2pgo.profiles.registry import waterfall_rows
from lbr2pgo.support.printable import printable

_TITLE, _COUNT = 34, 16
_FILES = 8
"""Mapped files that are named one by one."""
_OUTSIDE = waterfall.REASONS["outside"]

# Two styles are not worth loading rich for, which takes as long as converting a small recording.
_YELLOW, _DIM, _PLAIN = "\x1b[33m", "\x1b[2m", "\x1b[0m"  # ECMA-48, 8.3.117 (SGR)


def show_losses(tallies: Mapping[str, int], notes: Sequence[str], stream: TextIO) -> None:
    """Print the waterfall, and on stderr what had to be assumed."""
    if not messages.is_quiet():
        print_waterfall(tallies, stream)
    messages.note(notes)


def print_waterfall(tallies: Mapping[str, int], stream: TextIO) -> None:
    """Print each step: how many, which share, why others were lost, and what to do about it.

    Of several reasons the first, with the most losses, has its advice; all have their counts.
    """
    can_style = _has_styles(stream)
    for line, style in _lines(tallies):
        print(f"{style}{line}{_PLAIN}" if style and can_style else line, file=stream)


def _lines(tallies: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Each line, and how a terminal shows it."""
    for row in waterfall_rows(tallies):
        yield f"{row.step.title:<{_TITLE}}{row.count:>{_COUNT},}  {_share(row):>9}", ""
        if row.losses:
            (reason, count), *others = row.losses
            yield f"    lost {count:,}: {reason.title}", _YELLOW
            yield f"    → {reason.cure}", _DIM
            yield from _files(row) if reason is _OUTSIDE else ()
            for other, count in others:
                yield f"    lost {count:,}: {other.title}", _DIM
                yield from _files(row) if other is _OUTSIDE else ()
    suspicious = tallies.get("runs_suspicious", 0)
    if suspicious:
        over = f"{suspicious:,} valid fall-throughs run over a call or an indirect jump that was"
        yield f"{over} not logged (--strict rejects them)", ""
    patched = tallies.get("runs_patched", 0)
    if patched:
        over = f"{patched:,} valid fall-throughs run over instructions that the kernel patches"
        yield f"{over} (static keys, alternatives)", ""


def _files(row: waterfall.Row) -> Iterator[tuple[str, str]]:
    """The mapped files in which most of the branches outside the image lie."""
    for name, count in row.outside[:_FILES]:
        yield f"        {printable(name)} {count:,}", _DIM
    rest = [count for _, count in row.outside[_FILES:]]
    if rest:
        yield f"        {len(rest):,} other files {sum(rest):,}", _DIM


def _has_styles(stream: TextIO) -> bool:
    """Whether it is a terminal that shows styles to someone who wants them (no-color.org)."""
    if os.environ.get("FORCE_COLOR"):
        return True
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def _share(row: waterfall.Row) -> str:
    if row.share is None:
        return ""
    # A loss must show, however small: 100 % is kept for no loss at all.
    return "100 %" if row.count == row.before else f"{min(row.share * 100, 99.99):.2f} %"
