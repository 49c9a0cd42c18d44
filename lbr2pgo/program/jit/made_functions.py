"""Functions that a process made while it ran: where, when, and which lie over which."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

_PAST_USERS = 1 << 47
"""First address that no process has (Linux: Documentation/arch/x86/x86_64/mm.rst)."""


@dataclass(frozen=True, slots=True)
class JitFunction:
    """One piece of machine code with a name."""

    address: int
    """At run time."""
    size: int
    name: bytes
    time: int = 0
    """From when on it was there, in ns of the recording's clock."""
    code: bytes = b""
    """All of it, or nothing where that is not known."""
    lines: tuple[tuple[int, int, bytes], ...] = ()
    """Offset in the code, line and file, by offset."""

    @property
    def end(self) -> int:
        """First address behind it."""
        return self.address + self.size

    @property
    def is_possible(self) -> bool:
        """Whether a process can have it there."""
        return self.size > 0 and self.address >= 0 and self.end <= _PAST_USERS


@dataclass(slots=True)
class _Taken:
    """Disjoint ranges of addresses, by their starts."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def take(self, function: JitFunction) -> bool:
        """Add a function's range, unless some of it is taken."""
        at = bisect_right(self.starts, function.address)
        if at and self.ends[at - 1] > function.address:
            return False
        if at < len(self.starts) and self.starts[at] < function.end:
            return False
        self.starts.insert(at, function.address)
        self.ends.insert(at, function.end)
        return True


def newest(functions: Sequence[JitFunction]) -> list[JitFunction]:
    """Those, in their order, over which no later one lies.

    >>> [f.name for f in newest([JitFunction(16, 8, b"old"), JitFunction(20, 8, b"new")])]
    [b'new']
    """
    taken = _Taken()
    return [function for function in reversed(functions) if taken.take(function)][::-1]


def laid(
    functions: Sequence[JitFunction], most: int
) -> tuple[list[JitFunction], list[JitFunction]]:
    """The first ones at their addresses, and those that took the place of others.

    Functions come by time. Of the latter at most so many: what was replaced before is left out.

    >>> old, new = JitFunction(16, 8, b"old", 1), JitFunction(20, 8, b"new", 2)
    >>> [[f.name for f in each] for each in laid([old, new], 1)]
    [[b'old'], [b'new']]
    >>> [[f.name for f in each] for each in laid([old, new], 0)]
    [[b'new'], []]
    """
    first, later = _apart(functions)
    if len(later) <= most:
        return first, later
    begin = later[len(later) - most].time if most else functions[-1].time + 1
    before = newest([function for function in functions if function.time < begin])
    return _apart([*before, *(function for function in functions if function.time >= begin)])


def _apart(functions: Sequence[JitFunction]) -> tuple[list[JitFunction], list[JitFunction]]:
    taken = _Taken()
    first: list[JitFunction] = []
    later: list[JitFunction] = []
    for function in functions:
        (first if taken.take(function) else later).append(function)
    return first, later
