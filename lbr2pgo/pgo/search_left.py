"""How long the rest of a search will take, by what the kinds that it has tried took."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from lbr2pgo.pgo.kinds import ProfileKind, usual_kind
from lbr2pgo.pgo.loop_options import LoopOptions

LAID_OUT = 2
"""So many of the best kinds are laid out anew."""


class KindsLeft:
    """Told of each stage that begins, and of each kind that is over."""

    def __init__(
        self, loop: LoopOptions, kinds: Sequence[ProfileKind], jobs: int, ends: float | None
    ) -> None:
        self._jobs, self._ends = jobs, ends
        self._to_come = 0
        """In the stage at hand."""
        self._later = _stages(loop, kinds)
        self._took: dict[str, float] = {}

    def begin_stage(self, kinds: int) -> None:
        """So many kinds are tried now; what was expected was a guess."""
        self._to_come = kinds
        del self._later[:1]

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
        left = each * (self._to_come + sum(self._later)) / self._jobs
        return left if self._ends is None else max(min(left, self._ends - monotonic()), 0.0)


def _stages(loop: LoopOptions, kinds: Sequence[ProfileKind]) -> list[int]:
    """How many kinds each stage of a search will try, as far as that is known before it."""
    knows_flags = loop.compiler == "clang"
    refined = usual_kind(loop.compiler, loop.layout).refinements(loop.layout)
    return [
        len(kinds) + loop.instrumented,
        len(kinds),
        len(refined) if knows_flags else 0,
        1 if knows_flags else 0,
        LAID_OUT + loop.instrumented if loop.layout else 0,
    ]
