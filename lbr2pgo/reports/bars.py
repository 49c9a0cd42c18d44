"""How often a block, or a round of a loop, took how many cycles: as bars in the terminal."""

from __future__ import annotations

from itertools import accumulate

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.reports.model import Timing

_ROWS, _WIDEST = 24, 40
_TAIL = 0.99
"""Values beyond this part of all are one row."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_COLUMNS = (
    Column("cycles", "cycles", Unit.TEXT, FIGURE),
    Column("count", "samples", Unit.COUNT, FIGURE),
    Column("rate", "rate", Unit.SHARE, FIGURE),
    Column("bar", "occurrence rate", Unit.TEXT, FIGURE),
)


def bars(timing: Timing) -> Table:
    """Name `latency-bars`: a row for so many cycles or, of a wide range, from how many to how many.

    Rows are equally wide, so that gaps between modes show; the slowest hundredth shares one.
    """
    parts = _parts(timing)
    most = max((count for _, count in parts), default=1)
    whole = max(sum(timing.count), 1)
    rows = tuple((words, count, count / whole, bar(count / most)) for words, count in parts)
    kind = "a round of the loop at" if timing.is_loop else "the block at"
    title = f"Cycles of {kind} {timing.name}{f' ({timing.line})' if timing.line else ''}"
    simulated = ("These are cycles of a simulated processor.",) if timing.is_simulated else ()
    return Table("latency-bars", title, _COLUMNS, rows, simulated)


def bar(share: float) -> str:
    """A bar of so much of the longest one.

    >>> bar(0.5), bar(0.01)
    ('████████████████████', '▍')
    """
    full, rest = divmod(round(share * _WIDEST * 8), 8)
    return ("█" * full + _EIGHTHS[rest]).rstrip()


def _parts(timing: Timing) -> list[tuple[str, int]]:
    """Ranges of cycles, with how often one of each was seen."""
    if not timing.cycles:
        return []
    seen = list(zip(timing.cycles, accumulate(timing.count), strict=True))
    first = timing.cycles[0]
    last = next(cycles for cycles, so_far in seen if so_far >= _TAIL * seen[-1][1])
    width = (last - first) // _ROWS + 1
    counts = [0] * ((last - first) // width + 1)
    slower = 0
    for cycles, count in zip(timing.cycles, timing.count, strict=True):
        if cycles > last:
            slower += count
        else:
            counts[(cycles - first) // width] += count
    starts = range(first, last + 1, width)
    parts = [
        (str(start) if width == 1 else f"{start}-{start + width - 1}", count)
        for start, count in zip(starts, counts, strict=True)
    ]
    return [*parts, (f"more, to {timing.cycles[-1]:,}", slower)] if slower else parts
