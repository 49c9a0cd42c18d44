"""Functions that a process made while it ran: where, when, and which lie over which.

It writes a file of them, which anybody can put under the name of a process into `/tmp`. So one that
is merely found has to be ours or root's, and no link (perf: tools/perf/util/symbol.c, dso__load);
one that the user names may be anybody's.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from lbr2pgo.support.errors import InputError
from lbr2pgo.support.regular_file import UnfitFileError, read_regular

_PAST_USERS = 1 << 47
"""First address that no process has (Linux: Documentation/arch/x86/x86_64/mm.rst)."""


LONGEST_NAME = 1 << 12
"""Bytes; more is cut off."""


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


_BLOCK = 1 << 10
_Range = tuple[int, int]


@dataclass(slots=True)
class _Taken:
    """Disjoint ranges of addresses, in order; in blocks, since there may be a million."""

    blocks: list[list[_Range]] = field(default_factory=lambda: [[]])
    firsts: list[int] = field(default_factory=lambda: [0])
    """Where each block begins."""

    def take(self, function: JitFunction) -> bool:
        """Add a function's range, unless some of it is taken."""
        at = bisect_right(self.firsts, function.address) - 1
        block = self.blocks[at]
        place = bisect_right(block, (function.address, function.end))
        before = block[place - 1] if place else (0, 0)
        if place < len(block):
            behind = block[place][0]
        else:
            behind = self.firsts[at + 1] if at + 1 < len(self.firsts) else function.end
        if before[1] > function.address or behind < function.end:
            return False
        block.insert(place, (function.address, function.end))
        if len(block) > _BLOCK:
            half = block[_BLOCK // 2 :]
            del block[_BLOCK // 2 :]
            self.blocks.insert(at + 1, half)
            self.firsts.insert(at + 1, half[0][0])
        return True


def newest(functions: Sequence[JitFunction]) -> list[JitFunction]:
    """Those, in their order, over which no later one lies.

    >>> [f.name for f in newest([JitFunction(16, 8, b"old"), JitFunction(20, 8, b"new")])]
    [b'new']
    """
    if _are_disjoint(functions):
        return [*functions]
    taken = _Taken()
    return [function for function in reversed(functions) if taken.take(function)][::-1]


def _are_disjoint(functions: Sequence[JitFunction]) -> bool:
    """Whether none lies over another, as is usual."""
    ranges = sorted((function.address, function.end) for function in functions)
    return all(end <= start for (_, end), (start, _) in pairwise(ranges))


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
    if _are_disjoint(functions):
        return [*functions], []
    taken = _Taken()
    first: list[JitFunction] = []
    later: list[JitFunction] = []
    for function in functions:
        (first if taken.take(function) else later).append(function)
    return first, later


def read_made(path: Path, most: int, *, is_named: bool) -> bytes:
    """The content of at most so many bytes; raises InputError if it isn't to be read."""
    try:
        if is_named:
            return read_regular(path.resolve(), most)
        return read_regular(path, most, {os.geteuid(), 0})
    except UnfitFileError as error:
        what, cure = f"is not read: it {error}", "If it is trusted, name a plain copy with --jit."
    except (OSError, RuntimeError, ValueError) as error:
        what, cure = f"can't be read: {getattr(error, 'strerror', error)}", "Check the path."
    raise InputError(what, where=str(path), cure=cure)
