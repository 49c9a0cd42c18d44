"""Fdata of one build as that of a later one, by comparing the code of both.

A row is an edge: it goes where the blocks at both of its ends are, to the branch that leads from
one to the other now. Of functions in which some rows have no place, a flow tells the rest; those
that control flows through as before keep their rows as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    GLOBAL_SYMBOL,
    NOT_A_SYMBOL,
    Column,
    Fdata,
    FdataBranches,
    FdataLoads,
    FdataTable,
    TableT,
)
from lbr2pgo.profiles.bolt.fdata.stale_fdata import stale_counts
from lbr2pgo.profiles.bolt.fdata.sum_fdata import merged
from lbr2pgo.profiles.carried.account import LEAST_KEPT, Account, Way
from lbr2pgo.profiles.carried.changed_code import ChangedCode
from lbr2pgo.profiles.carried.code_successors import CodeSuccessors
from lbr2pgo.profiles.carried.edge_paths import Edge, EdgeCount
from lbr2pgo.program.blocks.function_code import plain_name
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_branches import PartialFunctions
from lbr2pgo.replay.inference.inferred_recordings import ReplayingStale
from lbr2pgo.replay.recordings import replay_images
from lbr2pgo.support.addresses import placed_array
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass

_Row = tuple[int, int, int, int, int, int, int, int]
_WAYS = tuple(Way)
"""By how sure they are: a row goes the less sure way of its ends."""
_SAME, _LOST = _WAYS.index(Way.SAME), _WAYS.index(Way.LOST)


def carried_fdata(fdata: Fdata, old: Program, new: Program) -> tuple[Fdata, Account]:
    """Fdata of the old program for the new one, and what became of its counts."""
    moving = _Moving(fdata, CodeSuccessors(old, new, fdata.names, bolted=fdata.bolted))
    moved = merged([(fdata.with_tables(moving.moved, names=moving.names), 1)]).content
    if moved.branches is not None and moving.starts and not moved.bolted:
        moved = _with_flow(moved, new, moving.starts, moving.idle)
    return moved, moving.account


def _with_flow(
    fdata: Fdata, program: Program, starts: Mapping[str, int], idle: Sequence[int]
) -> Fdata:
    """The same, but that a flow tells what ran in some functions, by their names.

    It does not run through `idle` blocks, which begin at these addresses.
    """
    counts = stale_counts(fdata, program).counts
    partial_ = PartialFunctions(*map(placed_array, (sorted(starts.values()), idle)))
    (found,) = replay_images((), [program], replaying=partial(ReplayingStale, counts, partial_))
    inferred, _ = fdata_from_counts(found.counts, program)
    told = _arriving(_leaving(inferred, starts, are_in=True), frozenset(fdata.names))
    parts = (_leaving(fdata, starts, are_in=False), told)
    return merged([(part, 1) for part in parts]).content


def _leaving(fdata: Fdata, names: Mapping[str, int], *, are_in: bool) -> Fdata:
    """The branches that leave functions of these names, or all others."""
    assert fdata.branches is not None
    named = np.array([name in names for name in fdata.names], np.bool_)
    rows = np.flatnonzero(named[fdata.branches.from_name] == are_in)
    return replace(fdata, branches=fdata.branches.take(rows))


def _arriving(fdata: Fdata, names: Set[str]) -> Fdata:
    """The branches to functions of these names: of others nothing is known but these."""
    assert fdata.branches is not None
    known = np.array([name in names for name in fdata.names], np.bool_)
    return replace(
        fdata, branches=fdata.branches.take(np.flatnonzero(known[fdata.branches.to_name]))
    )


@dataclass(frozen=True)
class _End:
    """One end of rows (n,), where it is code."""

    column: int
    """The table's column of offsets."""
    name: I64
    """Number of the function's name, -1 for none."""
    offset: I64

    @cached_property
    def _by_name(self) -> tuple[I64, I64]:
        order = np.argsort(self.name, kind="stable")
        return order, self.name[order]

    def of(self, name: int) -> I64:
        """Rows of a function, ascending."""
        order, names = self._by_name
        return order[slice(*np.searchsorted(names, [name, name + 1]).tolist())]


class _Moving:
    """Moves rows; what it tells of them is complete once all tables were moved."""

    def __init__(self, fdata: Fdata, successors: CodeSuccessors) -> None:
        self.account = Account(renamed=successors.renamed)
        self.starts: dict[str, int] = {}
        """Functions of which some rows were lost, and where they start in the new program."""
        self.idle: list[int] = []
        """Blocks in changed functions that did not run before, where they are now."""
        self._said, self._successors = fdata.names, successors
        self._unused = {plain_name(name) for name in successors.old_names}
        self._unused -= {plain_name(name) for name in fdata.names}
        number = [successors.number.get(name) for name in fdata.names]
        self._there = [None if i is None else successors.of(i) for i in number]
        pairs = list(zip(number, self._there, strict=True))
        self._is_gone = np.array([i is not None and j is None for i, j in pairs], np.bool_)
        self._changed = [
            None if i is None or j is None else successors.changed(i) for i, j in pairs
        ]
        self.account.gone.update(fdata.names[i] for i in np.flatnonzero(self._is_gone).tolist())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the functions are called now."""
        pairs = zip(self._said, self._there, strict=True)
        return tuple(s if j is None else self._successors.new_names[j] for s, j in pairs)

    def moved(self, rows: TableT) -> TableT:
        """The rows that have a place in the new program, there."""
        ends = list(_ends(rows))
        way = np.full(len(rows), _SAME)
        columns = rows.columns()
        inner, edges = self._inner(rows, ends, way)
        for row in np.flatnonzero(self._are_otherwise(ends) & ~inner).tolist():
            way[row] = _WAYS.index(self._move(ends, row))
        self._tell(ends, way, columns[-1])
        for end in ends:
            columns[end.column] = end.offset.astype(np.uint64)
        dropped = [i for i, name in enumerate(self._said) if name in self.account.dropped]
        kept = np.flatnonzero((way != _LOST) & ~inner)
        more = edges[~np.isin(edges[:, 1], dropped)] if len(edges) else edges
        parts = zip(columns, more.T, strict=True) if len(more) else ((c, c[:0]) for c in columns)
        return type(rows)(*(np.append(c[kept], new.astype(c.dtype)) for c, new in parts))

    def _inner(self, rows: FdataTable, ends: list[_End], way: I64) -> tuple[Bools, U64]:
        """Which rows are edges within changed functions, and the rows that they are now."""
        inner = np.zeros(len(rows), np.bool_)
        made: list[_Row] = []
        if isinstance(rows, FdataBranches):
            for name, code in enumerate(self._changed):
                if code is not None:
                    places = _inner_edges(code, name, ends)
                    inner[list(places)] = True
                    made += self._moved_edges(rows, ends, name, places, way)
        return inner, np.array(made, np.uint64).reshape(-1, len(rows.form))

    def _moved_edges(
        self, rows: FdataBranches, ends: list[_End], name: int, places: Mapping[int, Edge], way: I64
    ) -> Iterator[_Row]:
        """The rows that edges within a changed function, by the row of each, are now."""
        code, start = self._changed[name], self._start(name)
        assert code is not None
        idle = code.idle(_blocks_of(code, name, ends), self._unused)
        self.idle += [start + code.new.blocks[block].first for block in idle]
        passed: dict[Edge, EdgeCount] = {}
        for row, edge in places.items():
            counts = int(rows.count[row]), int(rows.mispredicted[row])
            passed.setdefault(edge, EdgeCount()).add(EdgeCount(*counts, {edge}))
        found = code.moved(passed, idle)
        for row, edge in places.items():
            both = (code.way(int(end.offset[row])) for end in ends)
            way[row] = _LOST if edge in found.lost else max(map(_WAYS.index, both))
        for edge, told in found.edges.items():
            leaves, arrives = code.offsets(edge)
            source, target = (GLOBAL_SYMBOL, name, leaves), (GLOBAL_SYMBOL, name, arrives)
            yield (*source, *target, told.mispredicted, told.count)

    def _start(self, name: int) -> int:
        """Where a function that is not gone begins in the new program."""
        there = self._there[name]
        assert there is not None
        return int(self._successors.new.start[there])

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
            offset if code is None
            else code.leaving(offset) if end is ends[0] and len(ends) > 1
            else code.arrival(offset)
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

    def _tell(self, ends: list[_End], way: I64, counts: Column) -> None:
        """Note what became of rows, and lose those of functions of which too little is left."""
        owner = np.where(ends[0].name < 0, ends[-1].name, ends[0].name)
        size, count = len(self._said), counts.astype(np.uint64)
        total, lost = (
            np.bincount(owner[rows], count[rows].astype(float), size)
            for rows in (owner >= 0, (owner >= 0) & (way == _LOST))
        )
        dropped = np.flatnonzero((lost > (1 - LEAST_KEPT) * total) & ~self._is_gone)
        for names in (owner, ends[-1].name):  # calls alone would make all of its blocks cold
            way[np.isin(names, dropped)] = _LOST
        self.account.dropped.update(self._said[i] for i in dropped.tolist())
        for name, rank, times in zip(owner.tolist(), way.tolist(), count.tolist(), strict=True):
            if name >= 0:
                self.account.add(self._said[name], _WAYS[rank], times)
        for name in np.flatnonzero((lost > 0) & ~self._is_gone).tolist():
            if name not in dropped:
                self.starts[self.names[name]] = self._start(name)


def _inner_edges(code: ChangedCode, name: int, ends: list[_End]) -> dict[int, Edge]:
    """By row, the edges within a function that are no calls."""
    source, target = ends
    own = [row for row in source.of(name).tolist() if target.name[row] == name]
    offsets = ((row, int(source.offset[row]), int(target.offset[row])) for row in own)
    return {row: code.edge(at, to) for row, at, to in offsets if not code.is_call(at)}


def _blocks_of(code: ChangedCode, name: int, ends: list[_End]) -> set[int]:
    """Blocks of a function that rows begin or end in."""
    offsets = (end.offset[end.of(name)].tolist() for end in ends)
    return {code.old.block_at(offset) for each in offsets for offset in each}


def _ends(rows: TableT) -> Iterator[_End]:
    columns = rows.columns()
    kinds = [i for i, letter in enumerate(rows.form) if letter == "k"]
    if isinstance(rows, FdataLoads):
        kinds.pop()  # data
    for i in kinds:
        kind, name, offset = (column.astype(np.int64) for column in columns[i : i + 3])
        yield _End(i + 2, np.where(kind == NOT_A_SYMBOL, -1, name), offset)
