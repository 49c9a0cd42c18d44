"""How much of an fdata file a program has no place for, and how near two of them are."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.bolt.fdata.fdata_tables import NOT_A_SYMBOL, UNKNOWN, Fdata
from lbr2pgo.profiles.reader import ProfileOverlap
from lbr2pgo.profiles.staleness import Staleness, staleness
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.code.registry import ARCHITECTURES
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import exact_sum
from lbr2pgo.support.sums import overlap as overlap_of

_FEWEST_OFFSETS = 16
"""So many offsets that are multiples of 4 are no chance where instructions are of any size: one in
four billion."""
_MOST_ASKEW = 0.25
"""Of x86-64's offsets three in four are no multiple of 4."""


def of_fdata(fdata: Fdata, program: Program) -> Staleness:
    """Of an fdata file: counts of branches or samples at names and offsets without code."""
    name, offset, is_symbol, count = _fdata_places(fdata)
    functions = discover(program.image, program.symbols)
    at = functions.numbers_of(fdata.names, bolted=fdata.bolted)
    owner = np.where(is_symbol != NOT_A_SYMBOL, at[name], -1) if len(at) else name
    inside = is_symbol != NOT_A_SYMBOL
    placed = inside & (owner >= 0)
    placed[placed] = offset[placed] < functions.max_size[owner[placed]]
    start = functions.start[owner[placed]]
    placed[placed] = program.instructions_for(start).index_of(start + offset[placed]) >= 0
    missing: dict[str, int] = {}
    for i in np.flatnonzero(inside & (owner < 0)).tolist():
        text = fdata.names[name[i]]
        missing[text] = missing.get(text, 0) + int(count[i])
    foreign = _is_foreign(offset[inside], program)
    return staleness(
        exact_sum(count[inside]), exact_sum(count[placed]), missing, is_foreign=foreign
    )


def _is_foreign(offset: U64, program: Program) -> bool:
    """Whether offsets in functions (n,) lie as instructions of another architecture do.

    Where all instructions are of one size, offsets are multiples of it.
    """
    known = np.unique(offset[offset > 0])
    if len(known) < _FEWEST_OFFSETS:
        return False
    step = program.image.architecture.instruction_size
    if step is not None:
        return bool(np.mean(known % step != 0) > _MOST_ASKEW)
    return any(
        each.instruction_size is not None and not (known % each.instruction_size).any()
        for each in ARCHITECTURES
    )


def _fdata_places(fdata: Fdata) -> tuple[I64, U64, I64, U64]:
    """Name, offset, kind and count of both ends of each branch, and of each sample."""
    columns = []
    if fdata.branches is not None:
        b = fdata.branches
        columns.append((b.from_name, b.from_offset, b.from_is_symbol, b.count))
        columns.append((b.to_name, b.to_offset, b.to_is_symbol, b.count))
    if fdata.samples is not None:
        s = fdata.samples
        columns.append((s.name, s.offset, s.is_symbol, s.count))
    empty = tuple(np.empty(0, kind) for kind in (np.int32, np.uint64, np.uint8, np.uint64))
    name, offset, kind, count = (
        np.concatenate(parts) for parts in zip(*columns, empty, strict=True)
    )
    return (
        name.astype(np.int64),
        offset.astype(np.uint64),
        kind.astype(np.int64),
        count.astype(np.uint64),
    )


def overlap(base: Fdata, test: Fdata) -> ProfileOverlap | None:
    """Of two distributions over branches; None where one has no branches."""
    a, b = _branch_counts(base), _branch_counts(test)
    keys = sorted(a.keys() | b.keys())
    if not a or not b:
        return None
    counts = [np.array([side.get(key, 0) for key in keys], dtype=np.uint64) for side in (a, b)]
    return ProfileOverlap(overlap_of(*counts))


def _branch_counts(fdata: Fdata) -> dict[tuple[str, int, str, int], int]:
    if fdata.branches is None:
        return {}
    columns = fdata.branches
    found: dict[tuple[str, int, str, int], int] = {}
    for from_name, from_offset, to_name, to_offset, count in zip(
        columns.from_name.tolist(),
        columns.from_offset.tolist(),
        columns.to_name.tolist(),
        columns.to_offset.tolist(),
        columns.count.tolist(),
        strict=True,
    ):
        names = fdata.names[from_name], fdata.names[to_name]
        if UNKNOWN not in names:
            key = (names[0], from_offset, names[1], to_offset)
            found[key] = found.get(key, 0) + count
    return found
