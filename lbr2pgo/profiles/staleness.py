"""How much of a profile speaks of code that a binary does not have (any more)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

MOST_MISSING = 0.5
"""A profile with more of its counts in functions that a program lacks is another program's."""
MUCH_STALE, MOST_STALE = 0.2, 0.5
"""A profile with more of its counts at places that a program lacks is warned of, or refused."""

_FOLLOWED = 0.75
_NAMED = 5
"""How many of the missing functions are named."""


# A checksum of control flow: which blocks follow each one, how many such followers there are, and
# how many calls (LLVM: lib/Transforms/IPO/SampleProfileProbe.cpp, computeCFGHash).
_FLOW = (1 << 48) - 1
_CALLS = 0xFFF


class Misfit(Enum):
    """Whose a profile is that does not belong to a program."""

    BUILD = "another build"
    NAMES = "a build with other names"
    ARCHITECTURE = "another architecture"
    PROGRAM = "another program"

    @property
    def cure(self) -> str:
        """What to do about it."""
        if self is Misfit.BUILD:
            return "Record the program as it is now."
        if self is Misfit.NAMES:
            return (
                "Compile all builds with or without -funique-internal-linkage-names (pseudo probes "
                "imply it), and each file by the same path: the names have a hash of that."
            )
        return "Record this program, or name its own profile."


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
    is_foreign: bool = False
    """Whether its places lie as instructions of another architecture do."""
    alone: float = 0.0
    """Counts in functions that llvm-bolt leaves alone for one that does not fit."""
    is_renamed: bool = False
    """Whether most functions that are not there are, under other names (`profiles.namesakes`)."""
    followed: float | None = None
    """Of an order of functions, how many neighbours stand so; None of others, and of short ones."""

    @property
    def is_followed(self) -> bool:
        """Whether the linker has followed the order, if it is one: by chance, half stand so."""
        return self.followed is None or self.followed > _FOLLOWED

    @property
    def lost(self) -> float:
        """Counts that nothing comes of."""
        return max(self.share, self.alone)

    def misfit(
        self, most_missing: float = MOST_MISSING, most_stale: float = MOST_STALE
    ) -> Misfit | None:
        """Whose profile it is if it does not belong to the program, by the shares allowed."""
        if self.functions > most_missing:
            return Misfit.NAMES if self.is_renamed else Misfit.PROGRAM
        if self.is_foreign and self.lost > MOST_STALE:
            return Misfit.ARCHITECTURE
        return Misfit.BUILD if self.share > most_stale else None

    def reason(self, misfit: Misfit, program: object) -> str:
        """What speaks for a misfit."""
        if misfit in {Misfit.PROGRAM, Misfit.NAMES}:
            from lbr2pgo.program.demangle import demangled  # formats are read to be listed, too

            names = ", ".join(map(demangled, self.missing))
            share = f"{self.functions:.0%} of its counts are in functions"
            lacks = "calls otherwise" if misfit is Misfit.NAMES else "lacks"
            return f"{share} that {program} {lacks} ({names})"
        if misfit is Misfit.ARCHITECTURE:
            return f"its places are not where instructions of {program} begin"
        return f"{program} has no place for {self.share:.2%} of its counts"

    def refuse(
        self,
        where: object,
        program: object,
        most_missing: float = MOST_MISSING,
        most_stale: float = MOST_STALE,
    ) -> None:
        """Raise InputError if the profile (`where`) does not belong to the program."""
        misfit = self.misfit(most_missing, most_stale)
        if misfit is not None:
            what = f"the profile of {misfit.value}: {self.reason(misfit, program)}"
            raise InputError(what, where=str(where), cure=misfit.cure)


def staleness(
    total: int,
    placed: int,
    missing: Mapping[str, int],
    changed: tuple[Changed, ...] = (),
    *,
    is_foreign: bool = False,
    alone: int = 0,
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
        is_foreign=is_foreign,
        alone=alone / total,
    )
