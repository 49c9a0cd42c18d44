"""How heavy functions and calls are by a written profile, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lbr2pgo.support.dataclass import dataclass


class CallSite(NamedTuple):
    """A call, or an inlined copy, of a function at a place of another one."""

    caller: str
    place: str
    """As the format has it: `3.1` for a line and a discriminator, an offset, a block."""
    callee: str


@dataclass(frozen=True, slots=True)
class ProfileWeights:
    """Counts of functions and of their calls."""

    kind: str
    """What such a profile is called; those of one kind compare."""
    functions: Mapping[str, int]
    """Counts of each function's own code, wherever it is inlined."""
    calls: Mapping[CallSite, int]
    per_sample: int = 0
    """How many counts a sample of a stack makes, at most but for very long stacks; 0: they are
    of no samples."""

    @property
    def total(self) -> int:
        """Counts of all functions."""
        return sum(self.functions.values())

    @property
    def samples(self) -> int | None:
        """How many samples it rests on, at the least; None where it is of no samples."""
        return max(self.total // self.per_sample, 1) if self.per_sample else None
