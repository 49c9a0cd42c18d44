"""What builds of a program cost, kept in a file, so that a search that was cut off goes on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.goal import SPEED, Goal
from lbr2pgo.pgo.measure import CountedRun, Measured
from lbr2pgo.support.output import write_pieces

PLAIN = "plain"
"""The build that the others are compared with."""
AGAIN = "plain again"
"""The same, counted once more, to see how far it repeats itself."""
_LEAST_SAVED = 0.01
"""Who saves so little is not to be compared with."""


def share_saved(plain: float, other: float, own: float) -> float | None:
    """What of the savings at another cost are had at one's own.

    None where the other one saves less than a hundredth of the plain cost.

    >>> share_saved(100, 80, 90), share_saved(100, 99.5, 90)
    (0.5, None)
    """
    return None if plain - other < _LEAST_SAVED * plain else (plain - own) / (plain - other)


@dataclass(frozen=True, slots=True)
class Cost:
    """One counted run."""

    instructions: int
    taken: int
    """Taken branches."""
    cycles: float
    """By the model of a front end."""
    code: int
    """Bytes of code in the program."""
    exit_code: int
    output: str
    """SHA-256 of what it wrote to standard output."""

    @property
    def run(self) -> CountedRun:
        """The run, as far as that is kept."""
        totals = Totals(self.instructions, self.taken, 0, 0)
        return CountedRun(totals, self.exit_code, self.output)


class Results:
    """Costs by the name of a build and by command; written whenever one is added.

    A goal says which are low.
    """

    def __init__(self, file: Path, goal: Goal = SPEED) -> None:
        self._file, self._goal = file, goal
        self._program = ""
        self.costs: dict[str, dict[str, Cost]] = {}

    def begin(self, program: str) -> bool:
        """Go on with what the file holds if it is of this program; gives whether it is.

        `program` is whatever tells one from another, such as its content's digest. A file that
        can't be read is begun anew: it only saves time.
        """
        self._program = program
        try:
            stored = json.loads(self._file.read_text())
            if stored["program"] == program:
                self.costs = {
                    name: {command: Cost(**cost) for command, cost in costs.items()}
                    for name, costs in stored["builds"].items()
                }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.costs = {}
        return bool(self.costs)

    @property
    def names(self) -> list[str]:
        """Of all builds."""
        return [name for name in self.costs if name != AGAIN]

    def add(self, name: str, costs: dict[str, Cost]) -> None:
        """Keep the costs of a build, beside those of other commands."""
        self.costs[name] = {**self.costs.get(name, {}), **costs}
        stored = {
            "program": self._program,
            "builds": {
                name: {command: asdict(cost) for command, cost in costs.items()}
                for name, costs in self.costs.items()
            },
        }
        write_pieces(self._file, [json.dumps(stored, indent=1).encode()])

    def ratios(self, name: str, command: str) -> tuple[float, float]:
        """Instructions and taken branches, with those of the plain build as 1."""
        cost, base = self.costs[name][command], self.costs[PLAIN][command]
        return cost.instructions / max(base.instructions, 1), cost.taken / max(base.taken, 1)

    def priced(self, name: str, command: str) -> tuple[float, float]:
        """Cycles and bytes of code, with those of the plain build as 1."""
        cost, base = self.costs[name][command], self.costs[PLAIN][command]
        return cost.cycles / max(base.cycles, 1), cost.code / max(base.code, 1)

    def ratio(self, name: str, commands: Sequence[str]) -> float:
        """What it costs, by the goal: the geometric mean over some commands."""
        factors = [self._goal.cost(*self.priced(name, command)) for command in commands]
        return math.prod(factors) ** (1 / len(factors))

    def measured(self, name: str, command: str) -> Measured:
        """What was counted of a build with a command, of the plain one twice."""
        again = self.costs.get(AGAIN, {}).get(command)
        twice = again.run if again is not None and name == PLAIN else None
        return Measured(name, self.costs[name][command].run, np.empty(0), again=twice)

    def shares(
        self, name: str, of: str, commands: Sequence[str]
    ) -> tuple[float | None, float | None]:
        """What of another build's savings one has, of instructions and of taken branches.

        None as for `share_saved`.
        """
        plain, other, own = (self._sums(each, commands) for each in (PLAIN, of, name))
        instructions, taken = map(share_saved, plain, other, own)
        return instructions, taken

    def _sums(self, name: str, commands: Sequence[str]) -> tuple[int, int]:
        costs = [self.costs[name][command] for command in commands]
        return sum(each.instructions for each in costs), sum(each.taken for each in costs)

    def spread(self, commands: Sequence[str]) -> float:
        """By what share the plain build's costs differ from one run to the next."""
        return abs(self.ratio(AGAIN, commands) - 1) if AGAIN in self.costs else 0.0

    def behaves(self, name: str) -> bool:
        """Whether it ends and writes as the plain build does, with every command.

        What that writes otherwise in each run says nothing.
        """
        again = self.costs.get(AGAIN, self.costs[PLAIN])
        return all(
            cost.exit_code == base.exit_code
            and (cost.output == base.output or again[command].output != base.output)
            for command, cost in self.costs[name].items()
            for base in [self.costs[PLAIN][command]]
        )

    def ranked(self, commands: Sequence[str], names: Iterable[str] | None = None) -> list[str]:
        """Those that behave, the cheapest first; of equals, the first by name."""
        some = filter(self.behaves, self.names if names is None else names)
        return sorted(some, key=lambda name: (self.ratio(name, commands), name))
