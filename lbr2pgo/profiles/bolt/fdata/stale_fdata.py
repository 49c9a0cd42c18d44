"""What fdata of an earlier build tells of a later one.

Names and offsets of most functions are the same. Where one has changed, offsets behind the change
are shifted: a branch or call whose place holds another instruction is looked for among those of
the same function that lead as far, or to the same callee. Shifts that several rows have in common
are the right ones, those of most rows first; branches over a change have one at each end.
What is not found is lost, and the counts of such a function are known in part only: a flow tells
the rest. (A. Ayupov, M. Panchenko, S. Pupyrev, "Stale profile matching", CC 2024, match blocks by
hashes, which fdata does not hold.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.bolt.fdata.fdata_tables import NOT_A_SYMBOL, Fdata
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, placed_array
from lbr2pgo.support.arrays import I64, U64, Bools

_FEWEST, _MOST = 2, 8
"""Rows that must have a shift in common, and shifts of a function that are tried."""
_DIRECT = (Kind.COND, Kind.JUMP, Kind.CALL)
_BRANCHES = (*_DIRECT, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL)
"""Fdata holds no returns."""


@dataclass(frozen=True, slots=True)
class StaleCounts:
    """Branches and fall-throughs that a build has a place for."""

    counts: BranchCounts
    partial: PlacedAddresses
    """Starts of functions of which some were lost: what was not counted there may have run."""


def stale_counts(fdata: Fdata, program: Program) -> StaleCounts:
    """Place the branches of fdata in a program; samples of `no_lbr` files are none."""
    rows = _Rows.of(fdata, program)
    code = program.instructions_for(rows.function[rows.inside])
    shift = rows.shifts(code, ~rows.fits(code, rows.source, rows.target))
    at, target = rows.source + shift[0], rows.target + shift[1]
    placed = ~rows.inside | rows.fits(code, at, target)
    lost = int(rows.count[~placed].sum())
    falls = placed & rows.inside & _are_falls(code, at, target)
    taken = placed & ~falls
    nothing = np.zeros(len(at), np.uint64)
    known = np.where(rows.inside, FROM, 0) | np.where(rows.arrives, TO, 0) | BRANCH
    told = int(rows.count[taken].sum())
    counts = aggregate(
        placed_addresses(np.concatenate([_u64(at)[taken], nothing[falls]])),
        placed_addresses(np.concatenate([_u64(target)[taken], _u64(at)[falls]])),
        placed_addresses(np.concatenate([nothing[taken], _u64(target)[falls]])),
        np.concatenate([known[taken], np.full(int(falls.sum()), TO | END)]).astype(np.uint8),
        np.concatenate([rows.count[taken], rows.count[falls]]),
        np.concatenate([rows.mispredicted[taken], nothing[falls]]),
        build_id=program.image.build_id,
        tallies={
            "branches_read": told + lost,
            "branches_in_image/stale": lost,
            "branches_in_image": told,
        },
    )
    return StaleCounts(counts, placed_addresses(np.unique(rows.function[~placed])))


def _u64(values: I64) -> U64:
    return values.astype(np.uint64)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of fdata (n,) with the addresses that their names and offsets have in a program."""

    function: PlacedAddresses
    """Start of the function that the branch is of, 0 for none."""
    limit: I64
    """Its end."""
    source: I64
    target: I64
    inside: Bools
    """Whether the source is in a function of the program."""
    arrives: Bools
    """Whether the target is."""
    is_local: Bools
    """Whether both are of one function."""
    count: U64
    mispredicted: U64

    @classmethod
    def of(cls, fdata: Fdata, program: Program) -> _Rows:
        functions = discover(program.image, program.symbols)
        base = functions.starts_of(fdata.names, bolted=fdata.bolted)
        end = dict(zip(functions.start.tolist(), functions.max_size.tolist(), strict=True))
        b = fdata.branches
        if b is None:
            no, none = np.zeros(0, np.int64), np.zeros(0, np.uint64)
            return cls(placed_array([]), no, no, no, no > 0, no > 0, no > 0, none, none)
        leaves = np.where(b.from_is_symbol != NOT_A_SYMBOL, base[b.from_name], -1)
        reaches = np.where(b.to_is_symbol != NOT_A_SYMBOL, base[b.to_name], -1)
        inside, arrives = leaves >= 0, reaches >= 0
        chosen = inside | arrives
        return cls(
            placed_addresses(_u64(np.where(inside, leaves, 0))[chosen]),
            np.array([at + end.get(at, 0) for at in leaves[chosen].tolist()], np.int64),
            np.where(inside, leaves + b.from_offset.astype(np.int64), 0)[chosen],
            np.where(arrives, reaches + b.to_offset.astype(np.int64), 0)[chosen],
            inside[chosen], arrives[chosen], (inside & (leaves == reaches))[chosen],
            b.count[chosen], b.mispredicted[chosen],
        )  # fmt: skip

    def fits(self, code: InstructionTable, source: I64, target: I64) -> Bools:
        """(n,): whether the program may branch, or fall through, from there to there."""
        if not len(code):
            return ~self.inside
        row = np.where(self.inside, code.index_of(placed_addresses(_u64(source))), -1)
        kind = code.kind[row]
        arrives = (code.index_of(placed_addresses(_u64(target))) >= 0) | ~self.is_local
        leads = np.where(code.has_target[row], code.target[row] == _u64(target), arrives)
        is_branch = np.isin(kind, _BRANCHES) & (leads | ~self.arrives)
        found: Bools = (row >= 0) & (is_branch | _are_falls(code, source, target))
        return found

    def shifts(self, code: InstructionTable, lost: Bools) -> I64:
        """(2, n): by how much the ends of each lost row lie elsewhere now; 0 for all others."""
        shift = np.zeros((2, len(self.source)), np.int64)
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in np.flatnonzero(lost & self.inside).tolist():
            groups[int(self.function[row]), int(self.limit[row])].append(row)
        for extent, rows in groups.items():
            there = _leads_of(code, *extent)
            votes: Counter[int] = Counter()
            for row in rows:
                places = (*there[self._lead(row)], *there[_ANYWHERE])
                votes.update({address - int(self.source[row]) for address in places})
            ways = list(_ways(votes))
            for row in rows:
                shift[:, row] = self._way(row, ways, there)
        return shift

    def _way(self, row: int, ways: list[_Way], there: dict[_Lead, list[int]]) -> _Way:
        """The first shift of source and target with which the program has the branch."""
        source = int(self.source[row])
        for leaves, reaches in ways:
            leads = self._lead(row, reaches - leaves), _ANYWHERE
            if any(source + leaves in there.get(lead, ()) for lead in leads):
                return leaves, reaches if self.is_local[row] else 0
        return 0, 0

    def _lead(self, row: int, longer: int = 0) -> _Lead:
        target = int(self.target[row])
        if self.is_local[row]:
            return True, target - int(self.source[row]) + longer
        return False, target


_Lead = tuple[bool, int]
"""Whether a branch stays in its function, and by how much it leads on, or where it leads."""
_ANYWHERE: _Lead = (False, -1)
"""Of indirect jumps and calls."""
_Way = tuple[int, int]
"""By how much the source and the target of a branch lie elsewhere."""


def _ways(votes: Counter[int]) -> Iterator[_Way]:
    """Shifts that rows have in common, of both ends alike first, the most frequent first."""
    frequent = sorted(votes, key=lambda shift: (-votes[shift], abs(shift), shift))[:_MOST]
    common = [shift for shift in frequent if votes[shift] >= _FEWEST]
    yield from ((shift, shift) for shift in common)
    yield from permutations([0, *common], 2)


def _leads_of(code: InstructionTable, start: int, limit: int) -> dict[_Lead, list[int]]:
    """The branches of a function by where they lead; a conditional one falls through as well."""
    found: dict[_Lead, list[int]] = defaultdict(list)
    first, past = np.searchsorted(code.address, np.array([start, limit], np.uint64)).tolist()
    for row in (first + np.flatnonzero(np.isin(code.kind[first:past], _DIRECT))).tolist():
        address, target = int(code.address[row]), int(code.target[row])
        is_local = start <= target < limit
        found[is_local, target - address if is_local else target].append(address)
        if code.kind[row] == Kind.COND:
            found[True, int(code.size[row])].append(address)
    indirect = np.isin(code.kind[first:past], (Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL))
    found[_ANYWHERE] = code.address[first:past][indirect].tolist()
    return found


def _are_falls(code: InstructionTable, source: I64, target: I64) -> Bools:
    """(n,): whether targets are the next instructions, and these run after the sources."""
    if not len(code):
        return np.zeros(len(source), np.bool_)
    row = code.index_of(placed_addresses(_u64(source)))
    found: Bools = (row >= 0) & (code.end_of(row) == _u64(target)) & ~code.ends_line[row]
    return found & ~np.isin(code.kind[row], CALLS)
