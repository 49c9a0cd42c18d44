"""How much of a profile speaks of code that a binary does not have (any more)."""

from __future__ import annotations

from collections.abc import Mapping

from lbr2pgo.support.dataclass import dataclass

_NAMED = 5
"""How many of the missing functions are named."""


# A checksum of control flow: which blocks follow each one, how many such followers there are, and
# how many calls (LLVM: lib/Transforms/IPO/SampleProfileProbe.cpp, computeCFGHash).
_FLOW = (1 << 48) - 1
_CALLS = 0xFFF


@dataclass(frozen=True, slots=True)
class Changed:
    """A function whose control flow is another one now: the compiler drops its counts."""

    function: str
    share: float
    """Of all counts, from 0 to 1."""
    old: int
    """Checksum in the profile."""
    new: int

    def why(self) -> str:
        """What the checksums tell of the change."""
        calls = self.old >> 48 & _CALLS, self.new >> 48 & _CALLS
        flow = "other branches" if self.old & _FLOW != self.new & _FLOW else "the same branches"
        return f"{flow}, {calls[0]} calls" + (f", now {calls[1]}" if calls[0] != calls[1] else "")


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of a profile the binary does not have; shares of all counts, from 0 to 1."""

    share: float
    """Counts at places that are not there, or runs that the code can't have made."""
    functions: float
    """Counts in functions that are not there, a part of the above."""
    missing: tuple[str, ...] = ()
    """The heaviest of those functions."""
    changed: tuple[Changed, ...] = ()
    """Functions of a probe profile that can't be used, the heaviest first."""


def staleness(
    total: int, placed: int, missing: Mapping[str, int], changed: tuple[Changed, ...] = ()
) -> Staleness:
    """Of counts, those that have a place, and those of each function that is not there."""
    if not total:
        return Staleness(0.0, 0.0, changed=changed)
    heaviest = sorted(missing, key=lambda name: (-missing[name], name))
    return Staleness(
        share=1 - placed / total,
        functions=sum(missing.values()) / total,
        missing=tuple(heaviest[:_NAMED]),
        changed=changed,
    )
