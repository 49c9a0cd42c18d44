"""What makes measured costs doubtful, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lbr2pgo.pgo.measure import Measured, differing_outputs
from lbr2pgo.pgo.timing import is_short, outliers

_REPEATS = 0.001
"""Counts of two runs that differ by less are those of one that repeats itself."""


def measured_notes(measured: Sequence[Measured]) -> Iterator[str]:
    """Of programs that were measured together; the others are compared with the first."""
    first = measured[0]
    for name in differing_outputs(measured):
        yield f"{name} writes another output than {first.name}"
    if first.counted.exit_code:
        yield f"every run ended with exit code {first.counted.exit_code}"
    noise = max(first.noise.values())
    if noise > _REPEATS:
        yield (
            f"{first.name} does not repeat itself: counts of two runs differ by {noise:.1%} (time, "
            "deadlines, random numbers, threads?)"
        )
    if not first.repeats_output:
        yield f"{first.name} writes something else each time, so outputs are not compared"
    yield from _notes_on_time(measured)
    shares = [count.share for each in measured for run in each.events for count in run.values()]
    if shares and min(shares) < 1:
        yield (
            f"hardware counters took turns: an event was counted in {min(shares):.0%} of a run, "
            "and the rest is extrapolated"
        )


def _notes_on_time(measured: Sequence[Measured]) -> Iterator[str]:
    first = measured[0]
    if is_short(first.seconds):
        yield (
            f"{first.name} takes {np.median(first.seconds) * 1000:.1f} ms, too short to tell: let "
            "one run repeat its work"
        )
    for each in measured:
        found = outliers(each.seconds)
        if found:
            yield (
                f"{found} of {len(each.seconds)} times of {each.name} are far off the others: was "
                "the machine busy?"
            )
