"""The end of a loop in a few lines: what changed by how much, what to ship, what to keep."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.pgo.measure import Interval, Measured, differing_outputs

_WORTH_IT = 0.99
"""Without times: what instructions and taken branches together must come down to."""
_WORDS = {"instructions": "instructions", "taken": "taken branches"}


@dataclass(frozen=True, slots=True)
class Built:
    """One build of a loop."""

    path: Path
    keep: tuple[str, ...]
    """What the next builds have to keep of its flags, a sentence each."""
    reads: tuple[Path, ...] = ()
    """What compiler and linker read."""
    layout: tuple[str, ...] = ()
    """The command that laid it out anew, if one did."""


def verdict(builds: Sequence[Built], measured: Sequence[Measured]) -> Iterator[str]:
    """Sentences for the user; `measured` are the builds in their order, or nothing.

    A build is better than the first if its wall time is, with the interval's confidence; where
    there are no times, if it needs clearly fewer instructions and taken branches.
    """
    best = _best(measured) if measured else len(builds) - 1
    if not measured:
        yield f"Verdict: not measured. The last build is {builds[best].path}."
    elif best:
        yield f"Verdict: {builds[best].path} {_change(measured[best], measured[0])}."
    else:
        yield "Verdict: no build is better than the plain one, as far as this run can tell."
        for each in measured[1:]:
            yield f"  {each.name} {_change(each, measured[0])}."
    for name in differing_outputs(measured) if measured else ():
        yield f"  {name} writes another output than the plain build: look into that first."
    yield from _advice(builds[best])


def _advice(chosen: Built) -> Iterator[str]:
    yield f"Ship {chosen.path}."
    yield from chosen.keep
    for path in chosen.reads:
        yield f"Keep {path}: every build reads it."
    if chosen.layout:
        yield f"Keep as the last step: {shlex.join(chosen.layout)}"


def _best(measured: Sequence[Measured]) -> int:
    """Number of the build that is surely better than the first, and the most so; 0 for none."""
    base, others = measured[0], set(differing_outputs(measured))
    gains = {
        i: cost
        for i, each in enumerate(measured)
        if i and each.name not in others and (cost := _cost(each, base)) is not None
    }
    return min(gains, key=lambda i: gains[i], default=0)


def _cost(each: Measured, base: Measured) -> float | None:
    """What a build costs, with the first one as 1; None if it is not surely less."""
    time = each.time_ratio(base)
    if time is not None:
        return time.median if time.high < 1 else None
    ratios = each.count_ratios(base)
    cost = (ratios["instructions"] or 1.0) * (ratios["taken"] or 1.0)
    return cost if cost < _WORTH_IT else None


def _change(each: Measured, base: Measured) -> str:
    counts = [
        f"{abs(1 - ratio):.1%} {'fewer' if ratio < 1 else 'more'} {_WORDS[name]}"
        for name, ratio in each.count_ratios(base).items()
        if name in _WORDS and ratio is not None
    ]
    return f"needs {' and '.join(counts)} than the plain build{_time(each.time_ratio(base))}"


def _time(ratio: Interval | None) -> str:
    if ratio is None:
        return ", not timed"
    return f", and {ratio.median:.3f} of its time ({ratio.low:.3f} to {ratio.high:.3f})"
