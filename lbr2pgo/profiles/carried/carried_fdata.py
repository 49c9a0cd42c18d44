"""Fdata of one build as that of a later one, by comparing the code of both.

A row is an edge: it goes where the blocks at both of its ends are, to the branch that leads from
one to the other now. Of functions in which some rows have no place, a flow tells the rest; those
that control flows through as before keep their rows as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import NOT_A_SYMBOL, Fdata, FdataLoads, TableT
from lbr2pgo.profiles.bolt.fdata.stale_fdata import stale_counts
from lbr2pgo.profiles.bolt.fdata.sum_fdata import merged
from lbr2pgo.profiles.carried.account import LEAST_KEPT, Account, Way
from lbr2pgo.profiles.carried.changed_code import ChangedCode
from lbr2pgo.profiles.carried.code_successors import CodeSuccessors
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.inferred_recordings import ReplayingStale
from lbr2pgo.replay.recordings import replay_images
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass

_WAYS = tuple(Way)
"""By how sure they are: a row goes the less sure way of its ends."""
_SAME, _LOST = _WAYS.index(Way.SAME), _WAYS.index(Way.LOST)


def carried_fdata(fdata: Fdata, old: Program, new: Program) -> tuple[Fdata, Account]:
    """Fdata of the old program for the new one, and what became of its counts."""
    moving = _Moving(fdata, CodeSuccessors(old, new, fdata.names, bolted=fdata.bolted))
    moved = merged([(fdata.with_tables(moving.moved, names=moving.names), 1)]).content
    if moved.branches is not None and moving.starts and not moved.bolted:
        moved = _with_flow(moved, new, moving.starts)
    return moved, moving.account


def _with_flow(fdata: Fdata, program: Program, starts: Mapping[str, int]) -> Fdata:
    """The same, but that a flow tells what ran in some functions, by their names."""
    counts = stale_counts(fdata, program).counts
    partly = placed_addresses(np.array(sorted(starts.values()), np.uint64))
    (found,) = replay_images((), [program], replaying=partial(ReplayingStale, counts, partly))
    inferred, _ = fdata_from_counts(found.counts, program)
    parts = (_leaving(fdata, starts, are_in=False), _leaving(inferred, starts, are_in=True))
    return merged([(part, 1) for part in parts]).content


def _leaving(fdata: Fdata, names: Mapping[str, int], *, are_in: bool) -> Fdata:
    """The branches that leave functions of these names, or all others."""
    assert fdata.branches is not None
    named = np.array([name in names for name in fdata.names], np.bool_)
    rows = np.flatnonzero(named[fdata.branches.from_name] == are_in)
    return replace(fdata, branches=fdata.branches.take(rows))


@dataclass(frozen=True, slots=True)
class _End:
    """One end of rows (n,), where it is code."""

    column: int
    """The table's column of offsets."""
    name: I64
    """Number of the function's name, -1 for none."""
    offset: I64


class _Moving:
    """Moves rows; what it tells of them is complete once all tables were moved."""

    def __init__(self, fdata: Fdata, successors: CodeSuccessors) -> None:
        self.account = Account(renamed=successors.renamed)
        self.starts: dict[str, int] = {}
        """Functions of which some rows were lost, and where they start in the new program."""
        self._said, self._successors = fdata.names, successors
        number = [successors.number.get(name) for name in fdata.names]
        self._there = [None if i is None else successors.of(i) for i in number]
        pairs = list(zip(number, self._there, strict=True))
        self._is_gone = np.array([i is not None and j is None for i, j in pairs], np.bool_)
        self._changed = [
            None if i is None or j is None else successors.changed(i) for i, j in pairs
        ]
        self.account.gone.update(fdata.names[i] for i in np.flatnonzero(self._is_gone).tolist())

    @property
    def names(self) -> tuple[str, ...]:
        """What the functions are called now."""
        pairs = zip(self._said, self._there, strict=True)
        return tuple(s if j is None else self._successors.new_names[j] for s, j in pairs)

    def moved(self, rows: TableT) -> TableT:
        """The rows that have a place in the new program, there."""
        ends = list(_ends(rows))
        way = np.full(len(rows), _SAME)
        for row in np.flatnonzero(self._are_otherwise(ends)).tolist():
            way[row] = _WAYS.index(self._move(ends, row))
        owner = np.where(ends[0].name < 0, ends[-1].name, ends[0].name)
        columns = rows.columns()
        self._tell(owner, way, columns[-1].astype(np.uint64))
        for end in ends:
            columns[end.column] = end.offset.astype(np.uint64)
        return type(rows)(*columns).take(np.flatnonzero(way != _LOST))

    def _are_otherwise(self, ends: list[_End]) -> Bools:
        """(n,): rows with an end in a function that is gone or changed."""
        changed = np.array([each is not None for each in self._changed], np.bool_)
        otherwise = np.append(self._is_gone | changed, False)
        found: Bools = np.any([otherwise[end.name] for end in ends], axis=0)
        return found

    def _move(self, ends: list[_End], row: int) -> Way:
        """Give a row the offsets that it has now."""
        names = [int(end.name[row]) for end in ends]
        if any(name >= 0 and self._is_gone[name] for name in names):
            return Way.LOST
        changed = [self._changed[name] if name >= 0 else None for name in names]
        offsets = [int(end.offset[row]) for end in ends]
        there = [
            _left(code, names, offsets) if code is not None and end is ends[0] and len(ends) > 1
            else _reached(code, offset)
            for code, end, offset in zip(changed, ends, offsets, strict=True)
        ]  # fmt: skip
        way = Way.SAME
        for end, code, offset, to in zip(ends, changed, offsets, there, strict=True):
            if to is None:
                return Way.LOST
            end.offset[row] = to
            if code is not None:
                way = max(way, code.way(offset), key=_WAYS.index)
        return way

    def _tell(self, owner: I64, way: I64, count: I64) -> None:
        """Note what became of rows, and lose those of functions of which too little is left."""
        size = len(self._said)
        total, lost = (
            np.bincount(owner[rows], count[rows].astype(float), size)
            for rows in (owner >= 0, (owner >= 0) & (way == _LOST))
        )
        dropped = np.flatnonzero((lost > (1 - LEAST_KEPT) * total) & ~self._is_gone)
        way[np.isin(owner, dropped)] = _LOST
        self.account.dropped.update(self._said[i] for i in dropped.tolist())
        for name, rank, times in zip(owner.tolist(), way.tolist(), count.tolist(), strict=True):
            if name >= 0:
                self.account.add(self._said[name], _WAYS[rank], times)
        functions = self._successors.new
        for name in np.flatnonzero(lost).tolist():
            there = self._there[name]
            if there is not None and name not in dropped:
                self.starts[self._successors.new_names[there]] = int(functions.start[there])


def _ends(rows: TableT) -> Iterator[_End]:
    columns = rows.columns()
    kinds = [i for i, letter in enumerate(rows.form) if letter == "k"]
    if isinstance(rows, FdataLoads):
        kinds.pop()  # data
    for i in kinds:
        kind, name, offset = (column.astype(np.int64) for column in columns[i : i + 3])
        yield _End(i + 2, np.where(kind == NOT_A_SYMBOL, -1, name), offset)


def _left(code: ChangedCode, names: list[int], offsets: list[int]) -> int | None:
    """The offset from which control leaves now as it did."""
    if names[0] == names[1] and not code.is_call(offsets[0]):
        return code.branch(*offsets)
    return code.leaving(offsets[0])


def _reached(code: ChangedCode | None, offset: int) -> int | None:
    return offset if code is None else code.arrival(offset)
