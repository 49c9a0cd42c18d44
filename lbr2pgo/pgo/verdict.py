"""The end of a loop in a few lines: what changed by how much, what to ship, what to keep."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.pgo.comparison import change, decided_otherwise
from lbr2pgo.pgo.goal import SPEED, Goal
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.measure import Measured, differing_outputs

_WORTH_IT = 0.99
"""Where no time is certain: what cycles of the model must come down to."""


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


def verdict(
    builds: Sequence[Built], measured: Sequence[Measured], options: LoopOptions
) -> Iterator[str]:
    """Sentences for the user; `measured` are the builds in their order, or nothing.

    A build is better than the first if its user time certainly is; where times tell no build from
    the first, as they do where they are too short, if it needs clearly fewer cycles by the model.
    Another goal than speed weighs the size of the code, too; where functions are ordered for the
    start, that is what counts.
    """
    best = len(builds) - 1 if not measured else _best(measured, options.goal)
    if measured and options.startup and _is_as_good(measured[-1], measured):
        best = len(builds) - 1
    if not measured:
        yield f"Verdict: not measured. The last build is {builds[best].path}."
    elif best:
        yield f"Verdict: {builds[best].path} {change(measured[best], measured[0])}."
    else:
        goal = options.goal.name
        yield f"Verdict: no build is better for {goal} than the plain one, as far as this tells."
        for each in measured[1:]:
            yield f"  {each.name} {change(each, measured[0])}."
    for name in differing_outputs(measured) if measured else ():
        yield f"  {name} writes another output than the plain build: look into that first."
    if measured:
        yield from decided_otherwise(measured)
        yield _input(options)
    yield from _advice(builds[best])


def _input(options: LoopOptions) -> str:
    if options.is_measured_by_training:
        return (
            f"WARNING: measured on what it was trained with ({options.measured}), which flatters a "
            "profile: --measure CMD gives another input."
        )
    return f"Measured on: {options.measured}"


def _advice(chosen: Built) -> Iterator[str]:
    yield f"Ship {chosen.path}."
    yield from chosen.keep
    for path in chosen.reads:
        yield f"Keep {path}: every build reads it."
    if chosen.layout:
        yield f"Keep as the last step: {shlex.join(chosen.layout)}"


def _is_as_good(each: Measured, measured: Sequence[Measured]) -> bool:
    """Whether nothing speaks against a build that is for its start, which nobody measured."""
    time = each.sure_time(measured[0])
    return each.name not in differing_outputs(measured) and (time is None or time.median < 1)


def _best(measured: Sequence[Measured], goal: Goal) -> int:
    """Number of the build that is surely better than the first, and the most so; 0 for none.

    Where no time decides, since it may be noise, cycles of the model do.
    """
    base, others = measured[0], set(differing_outputs(measured))
    same = {i: each for i, each in enumerate(measured) if i and each.name not in others}
    times = {i: time.median for i, each in same.items() if (time := each.sure_time(base))}
    faster = {i: time for i, time in times.items() if time < 1}
    slower = times.keys() - faster.keys()
    speeds = {i: _counted_speed(each, base) for i, each in same.items() if i not in slower} | faster
    if faster and goal == SPEED:
        speeds = faster
    costs = {i: goal.cost(speed, same[i].growth(base)) for i, speed in speeds.items()}
    gains = {i: cost for i, cost in costs.items() if cost < (1 if i in faster else _WORTH_IT)}
    return min(gains, key=lambda i: gains[i], default=0)


def _counted_speed(each: Measured, base: Measured) -> float:
    """By cycles of the model, with those of the first build as 1.

    Without a model, by instructions and taken branches together.
    """
    ratio = each.cycle_ratio(base)
    if ratio is not None:
        return ratio if abs(1 - ratio) > max(base.noise.values()) else 1.0
    return math.prod(
        ratio
        for name in ("instructions", "taken")
        if (ratio := each.count_ratios(base)[name]) is not None
        and abs(1 - ratio) > base.noise[name]
    )
