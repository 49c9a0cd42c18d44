"""What a build is to be good at, as one cost of its cycles and of its code's size."""

from __future__ import annotations

from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """How much each of them weighs: exponents."""

    name: str
    cycles: float
    code: float

    @property
    def puts_size_first(self) -> bool:
        """Whether code is to be small, whatever that costs."""
        return self.code > self.cycles

    def cost(self, cycles: float, code: float) -> float:
        """Of a build, by both as ratios to another one, whose cost is 1.

        >>> GOALS["balanced"].cost(0.9, 2.0) < GOALS["balanced"].cost(0.98, 1.0)
        True
        >>> GOALS["balanced"].cost(0.95, 2.0) < GOALS["balanced"].cost(0.98, 1.0)
        False
        """
        return float(cycles**self.cycles * code**self.code)


GOALS = {
    each.name: each
    for each in (
        Goal("size", cycles=0.1, code=1),
        Goal("speed", cycles=1, code=0),
        Goal("balanced", cycles=1, code=0.1),
    )
}
"""In the balanced one, code of twice the size has to save 7 % of the cycles (1 - 0.5 ** 0.1). All
weights are chosen, and no measurement tells them: what size is worth is the user's to say."""
SPEED = GOALS["speed"]
