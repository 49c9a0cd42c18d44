"""Which compilation unit an address belongs to.

`.debug_aranges` answers for the units that it lists, the range of the root DIE for the others;
where several units claim an address, LLVM's choice is taken (LLVM: DWARFDebugAranges.cpp).
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

import numpy as np

from lbr2pgo.native.dwarf_ranges import unit_ranges
from lbr2pgo.program.dwarf.container import Container
from lbr2pgo.support.arrays import I64, U64, Bytes


@dataclass(frozen=True)
class Claims:
    """Ranges that units say are theirs, sorted by their starts; they may overlap."""

    starts: U64
    ends: U64
    units: I64

    def units_with(self, addresses: U64) -> I64:
        """Units that claim at least one of the addresses, in order."""
        addresses = np.sort(addresses)
        before, behind = (np.searchsorted(addresses, b) for b in (self.starts, self.ends))
        return np.unique(self.units[before < behind])


@dataclass(frozen=True)
class Cover:
    """Intervals of addresses, sorted, free of overlaps, each with its unit."""

    starts: U64
    ends: U64
    units: I64

    def unit_of(self, addresses: U64) -> I64:
        """Index of the unit of each address, -1 where no unit claims it."""
        if len(self.starts) == 0:
            return np.full(len(addresses), -1)
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        inside = (at >= 0) & (addresses < self.ends[at])
        return np.where(inside, self.units[at], -1)


def read_claims(container: Container) -> Claims:
    """What the units of a file claim."""
    listed, claims = read_aranges(container.aranges)
    units = container.units
    wanted = container.is_compile_unit & ~np.isin(units["offset"], listed)
    limit = 4096 + len(container.sections.ranges) + len(container.sections.rnglists)
    own, _ = unit_ranges(container.sections, units, wanted, *container.roots, limit)
    # LLVM compares units by their offset; by index is the same order.
    at = container.unit_at(claims[:, 2].astype(np.int64))
    known = at >= 0
    starts = np.concatenate([claims[known, 0], own[:, 0]])
    ends = np.concatenate([claims[known, 1], own[:, 1]])
    owners = np.concatenate([at[known], own[:, 2].astype(np.int64)])
    order = np.argsort(starts, kind="stable")
    order = order[starts[order] < ends[order]]
    return Claims(starts[order], ends[order], owners[order])


def read_aranges(data: Bytes) -> tuple[I64, U64]:
    """Units that `.debug_aranges` lists, and their ranges: (k,) offsets, (m, 3) low, high, offset.

    Reading stops at the first set that is damaged or of a form that LLVM refuses.
    """
    listed: list[int] = []
    parts = [np.zeros((0, 3), np.uint64)]
    position = 0
    while position < len(data):
        part, offset, behind = _read_set(data, position)
        if part is None:
            break
        listed.append(offset)
        parts.append(part)
        position = behind
    return np.array(listed, np.int64), np.concatenate(parts)


def _read_set(data: Bytes, position: int) -> tuple[U64 | None, int, int]:
    """One set: (ranges or None, its unit's offset, next position). Source: DWARF 5, 6.1.2."""
    start = data[position : position + 12].tobytes()
    offset_size = 8 if start[:4] == b"\xff\xff\xff\xff" else 4
    at = position + (12 if offset_size == 8 else 4)
    behind = at + int.from_bytes(start[-8:] if offset_size == 8 else start[:4], "little")
    header = data[at : at + 4 + offset_size].tobytes()
    if behind > len(data) or len(header) < 4 + offset_size:
        return None, 0, 0
    unit = int.from_bytes(header[2 : 2 + offset_size], "little")
    address_size, segment_size = header[-2:]
    if address_size not in (4, 8) or segment_size != 0:
        return None, 0, 0
    tuple_size = 2 * address_size
    first = position + -(-(at + len(header) - position) // tuple_size) * tuple_size
    if (behind - position) % tuple_size or first >= behind:
        return None, 0, 0
    pairs = np.frombuffer(data[first:behind].tobytes(), f"<u{address_size}").reshape(-1, 2)
    if pairs[-1].any():
        return None, 0, 0
    rows = np.empty((len(pairs) - 1, 3), np.uint64)
    rows[:, 0] = pairs[:-1, 0]
    rows[:, 1] = rows[:, 0] + pairs[:-1, 1]
    rows[:, 2] = unit
    return rows, unit, behind


def resolve(claims: Claims) -> Cover:
    """A cover of claims that may overlap.

    A claim that no other touches stands as it is. Where claims overlap, each stretch goes on
    belonging to the unit before it if that one claims it too, and to the first unit otherwise.

    >>> u64 = lambda *numbers: np.array(numbers, np.uint64)
    >>> cover = resolve(Claims(u64(0, 4, 20), u64(10, 12, 30), np.array([1, 0, 2])))
    >>> [*zip(cover.starts.tolist(), cover.ends.tolist(), cover.units.tolist())]
    [(0, 10, 1), (10, 12, 0), (20, 30, 2)]
    """
    reach = np.maximum.accumulate(claims.ends)
    if np.all(reach[:-1] <= claims.starts[1:]):
        return Cover(claims.starts, claims.ends, claims.units)
    stretches = _sweep(claims.starts.tolist(), claims.ends.tolist(), claims.units.tolist())
    table = np.array(stretches, np.uint64).reshape(-1, 3)
    return Cover(table[:, 0], table[:, 1], table[:, 2].astype(np.int64))


def _sweep(starts: list[int], ends: list[int], units: list[int]) -> list[list[int]]:
    """Stretches (start, end, unit) between the bounds of claims."""
    bounds = sorted(
        [(start, unit, 1) for start, unit in zip(starts, units, strict=True)]
        + [(end, unit, -1) for end, unit in zip(ends, units, strict=True)]
    )
    stretches: list[list[int]] = []
    active: Counter[int] = Counter()
    smallest: list[int] = []
    before = 0
    for address, unit, change in bounds:
        while smallest and active[smallest[0]] <= 0:
            heapq.heappop(smallest)
        if before < address and smallest:
            last = stretches[-1] if stretches else [0, 0, -1]
            if last[1] == before and active[last[2]] > 0:
                last[1] = address
            else:
                stretches.append([before, address, smallest[0]])
        active[unit] += change
        if change > 0:
            heapq.heappush(smallest, unit)
        before = address
    return stretches
