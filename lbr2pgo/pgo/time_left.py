"""How long the rest of a loop or a search will take, by what its steps or kinds took so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Literal

from lbr2pgo.pgo import STEPS
from lbr2pgo.pgo.kinds import ProfileKind, usual_kind
from lbr2pgo.pgo.loop_options import LoopOptions

_LONG = {"Build", "Train"}
"""Until these are known, nothing is said; what else is to come hardly matters."""
LAID_OUT = 2
"""So many of the best kinds are laid out anew."""
Stage = Literal["shipped", "trained", "refined", "combined", "laid out"]
"""Of a search, in their order; the third and the fourth come again while they help."""


class TimeLeft:
    """Of a loop, told of each step that is over, by the first word of its title."""

    def __init__(self, options: LoopOptions) -> None:
        first, last = (STEPS.index(name) for name in (options.first, options.last))
        self._to_come = [word for name in STEPS[first : last + 1] for word in _words(name, options)]
        self._took: dict[str, float] = {}
        self._counted = 3 + bool(options.layout or options.startup)
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
        "startup": ["Train", "Convert", "Build", "Train"] if options.startup else [],
        "bolt": ["Train", "Convert"] if options.bolt and options.bolt_profile is None else [],
        "measure": ["Measure"] if options.measured else [],
    }
    yield from words[step]


class KindsLeft:
    """Of a search: told of each stage that begins, and of each kind that is over."""

    def __init__(
        self, loop: LoopOptions, kinds: Sequence[ProfileKind], jobs: int, ends: float | None
    ) -> None:
        self._jobs, self._ends = jobs, ends
        self._to_come = 0
        """In the stage at hand."""
        self._guessed, self._later = _stages(loop, kinds), 0
        self._took: dict[str, float] = {}

    def begin_stage(self, stage: Stage, kinds: int) -> None:
        """So many kinds are tried now; what was expected was a guess."""
        self._to_come = kinds
        names = [*self._guessed]
        self._later = sum(self._guessed[name] for name in names[names.index(stage) + 1 :])

    def is_over(self, kind: ProfileKind, seconds: float | None = None) -> None:
        """A kind is, in no time where an earlier search has counted it."""
        self._to_come -= 1
        if seconds is not None:
            self._took[kind.name] = seconds

    @property
    def seconds(self) -> float | None:
        """That are left; None where nothing was tried yet."""
        if not self._took:
            return None
        each = sum(self._took.values()) / len(self._took)
        left = each * (self._to_come + self._later) / self._jobs
        return left if self._ends is None else max(min(left, self._ends - monotonic()), 0.0)


def _stages(loop: LoopOptions, kinds: Sequence[ProfileKind]) -> dict[Stage, int]:
    """How many kinds each stage of a search will try, as far as that is known before it.

    How often the best is refined further is not.
    """
    knows_flags = loop.compiler == "clang"
    refined = usual_kind(loop.compiler, loop.layout).refinements(loop.layout)
    return {
        "shipped": len(kinds) + loop.instrumented,
        "trained": len(kinds),
        "refined": len(refined) if knows_flags else 0,
        "combined": 1 if knows_flags else 0,
        "laid out": LAID_OUT + loop.instrumented if loop.layout else 0,
    }
