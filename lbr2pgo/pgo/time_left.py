"""How long the rest of a loop will take, by what its steps took so far."""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.pgo import STEPS
from lbr2pgo.pgo.loop_options import LoopOptions

_LONG = {"Build", "Train"}
"""Until these are known, nothing is said; what else is to come hardly matters."""


class TimeLeft:
    """Told of each step that is over; steps are known by the first word of their titles."""

    def __init__(self, options: LoopOptions) -> None:
        first, last = (STEPS.index(name) for name in (options.first, options.last))
        self._to_come = [word for name in STEPS[first : last + 1] for word in _words(name, options)]
        self._took: dict[str, float] = {}
        self._counted = 3 + bool(options.layout)
        """Runs that are counted: of each build, and the first one again."""

    def after(self, title: str, seconds: float) -> float | None:
        """Seconds that are left once a step took so many; None where nobody can tell yet."""
        word, *_ = title.split()
        self._took[word] = seconds
        if word in self._to_come:
            self._to_come.remove(word)
        if _LONG.intersection(self._to_come) - self._took.keys():
            return None
        took = {"Measure": self._counted * self._took.get("Train", 0.0), **self._took}
        return sum(took.get(each, 0.0) for each in self._to_come)


def _words(step: str, options: LoopOptions) -> Iterator[str]:
    """Of the titles of a step."""
    trains = options.profile is None
    recordings = 2 if options.both else 1
    words = {
        "build": ["Build"],
        "training-build": ["Build"] if trains and options.training_flags else [],
        "train": ["Train"] * recordings if trains else [],
        "convert": ["Convert"] * recordings if trains else [],
        "rebuild": ["Build"],
        "again": ["Train", "Convert", "Build"] if options.again else [],
        "propeller": ["Train", "Convert", "Build"] if options.propeller else [],
        "bolt": ["Train", "Convert"] if options.bolt and options.bolt_profile is None else [],
        "measure": ["Measure"] if options.measured else [],
    }
    yield from words[step]
