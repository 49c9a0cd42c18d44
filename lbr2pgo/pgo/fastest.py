"""Which of several builds takes less time than the first, as far as their times can tell."""

from __future__ import annotations

from collections.abc import Sequence

from lbr2pgo.pgo.goal import Goal
from lbr2pgo.pgo.measure import Measured
from lbr2pgo.pgo.timing import CONFIDENCE


def fastest(measured: Sequence[Measured], goal: Goal) -> int:
    """Number of the build that costs least by the goal, with time in the place of cycles.

    0, the first, unless another one surely takes less time.
    """
    base, *others = measured
    costs = {0: 1.0}
    for number, each in enumerate(others, 1):
        time = _surely_less_time(each, base, len(others))
        if time is not None:
            costs[number] = goal.cost(time, each.growth(base))
    return min(costs, key=lambda number: costs[number])


def _surely_less_time(each: Measured, base: Measured, compared: int) -> float | None:
    """With that of another build as 1; None where it is not surely less.

    The more are compared, the more likely one of them is faster by chance (Bonferroni).
    """
    time = each.sure_time(base)
    is_chance = each.time_chance(base) / 2 * compared > 1 - CONFIDENCE
    return None if time is None or time.median >= 1 or is_chance else time.median
