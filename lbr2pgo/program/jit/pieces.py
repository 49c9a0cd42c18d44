"""Code whose bytes nobody knows, cut where it was seen to branch or to be branched to.

So blocks, runs and their times can be told of it. All that is known of what a piece does is where
it branched: to one target, as a conditional jump may, or to several, as an indirect one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.support.addresses import (
    ByteRanges,
    ImageAddresses,
    Numbers,
    image_addresses,
    image_array,
)
from lbr2pgo.support.arrays import U8, Bools
from lbr2pgo.support.distinct import distinct, place_of
from lbr2pgo.support.intervals import numbers_in

_LONGEST = 255
"""Bytes of an instruction that a table can hold."""


@dataclass(frozen=True, slots=True)
class SeenBranches:
    """What was recorded of code, in its image's own addresses."""

    ends: ImageAddresses
    """(k,), ascending: where branches and what ran between them began and ended."""
    source: ImageAddresses
    """(n,), ascending: of each different branch."""
    target: ImageAddresses
    """(n,): 0 where it is not known; of another image what its slot makes it."""
    has_target: Bools

    @classmethod
    def nothing(cls) -> Self:
        """Of code that did not run."""
        none = image_array(())
        return cls(none, none, none, np.zeros(0, np.bool_))


def cut_where_seen(ranges: ByteRanges, seen: SeenBranches) -> InstructionTable:
    """Pieces of code at ordered ranges, as a table of instructions.

    >>> column = lambda *numbers: np.array(numbers, np.uint64)
    >>> seen = SeenBranches(column(16, 20), column(20), column(16), np.ones(1, bool))
    >>> table = cut_where_seen(ByteRanges(column(8), column(32)), seen)
    >>> rows = zip(*(c.tolist() for c in (table.address, table.size, table.kind, table.target)))
    >>> [(address, size, Kind(kind).name, to) for address, size, kind, to in rows]
    [(8, 8, 'OTHER', 0), (16, 4, 'OTHER', 0), (20, 12, 'COND', 16)]
    """
    begin = distinct(np.concatenate([ranges.start, seen.ends]))
    at = ranges.around(image_addresses(begin))
    begin, at = begin[at >= 0], at[at >= 0]
    past = np.minimum(np.append(begin[1:], ranges.end[-1:]), ranges.end[at])
    parts = -(-(past - begin).astype(np.int64) // _LONGEST)
    steps = numbers_in(np.zeros_like(parts), parts).astype(np.uint64) * np.uint64(_LONGEST)
    address = np.repeat(begin, parts) + steps
    size = np.minimum(np.repeat(past, parts) - address, np.uint64(_LONGEST)).astype(np.uint8)
    return InstructionTable(image_addresses(address), size, *_branches(address, seen))


def _branches(address: Numbers, seen: SeenBranches) -> tuple[U8, ImageAddresses, Bools]:
    """Of pieces (m,) at these addresses: kind, target, and whether that is the only one."""
    kind = np.full(len(address), Kind.OTHER, np.uint8)
    target, has_target = np.zeros(len(address), np.uint64), np.zeros(len(address), np.bool_)
    at = place_of(seen.source, address)
    here = np.flatnonzero(at >= 0)
    at = at[here]
    kind[at] = Kind.INDIRECT_JUMP
    is_alone = (np.bincount(at, minlength=len(address))[at] == 1) & seen.has_target[here]
    kind[at[is_alone]], has_target[at[is_alone]] = Kind.COND, True
    target[at[is_alone]] = seen.target[here][is_alone]
    return kind, image_addresses(target), has_target
