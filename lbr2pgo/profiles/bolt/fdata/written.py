"""Written fdata: recognised, read, shown as text, and asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    NOT_A_SYMBOL,
    UNKNOWN,
    Fdata,
    FdataTable,
)
from lbr2pgo.profiles.bolt.fdata.placed_counts import counts_of_fdata
from lbr2pgo.profiles.bolt.fdata.sum_fdata import merged
from lbr2pgo.profiles.reader import Merging, ProfileOverlap, Reader, lines_written
from lbr2pgo.profiles.staleness import Staleness, staleness
from lbr2pgo.profiles.weights import CallSite, ProfileWeights
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.registry import ARCHITECTURES
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.sums import exact_sum
from lbr2pgo.support.sums import overlap as overlap_of

if TYPE_CHECKING:
    from lbr2pgo.profiles.carried.account import Account

PER_SAMPLE = 48
"""A stack of 32 branches makes 18 to 46 branches and fall-throughs."""
_FEWEST_OFFSETS = 16
"""So many offsets that are multiples of 4 are no chance where instructions are of any size: one in
four billion."""
_MOST_ASKEW = 0.25
"""Of x86-64's offsets three in four are no multiple of 4."""


def of_fdata(fdata: Fdata, program: Program) -> Staleness:
    """Of an fdata file: counts of branches or samples at names and offsets without code.

    llvm-bolt leaves a function alone if one of its branches does not fit (LLVM:
    bolt/lib/Profile/DataReader.cpp, evaluateProfileData).
    """
    name, offset, is_symbol, count = _fdata_places(fdata)
    functions = discover(program.image, program.symbols)
    at = functions.numbers_of(fdata.names, bolted=fdata.bolted)
    owner = np.where(is_symbol != NOT_A_SYMBOL, at[name], -1) if len(at) else name
    inside = is_symbol != NOT_A_SYMBOL
    code, row = _instructions(offset, owner, functions, program)
    placed = row >= 0
    fits = placed.copy()
    if fdata.branches is not None:
        from_, to = np.split(row, 2)
        known = np.flatnonzero((from_ >= 0) & ~fdata.bolted)
        fits[known] = _may_lead(from_[known], to[known], code)
        fits &= ~np.isin(owner, owner[inside & ~fits])
    missing: dict[str, int] = {}
    for i in np.flatnonzero(inside & (owner < 0)).tolist():
        text = fdata.names[name[i]]
        missing[text] = missing.get(text, 0) + int(count[i])
    foreign = _is_foreign(offset[inside], program)
    return staleness(
        exact_sum(count[inside]), exact_sum(count[placed]), missing,
        is_foreign=foreign, alone=exact_sum(count[inside & ~fits]),
    )  # fmt: skip


def _instructions(
    offset: U64, owner: I64, functions: BinaryFunctions, program: Program
) -> tuple[InstructionTable, I64]:
    """Code, and the number in it of the instruction (n,) at each offset, -1 where none is."""
    inside = owner >= 0
    inside[inside] = offset[inside] < functions.max_size[owner[inside]]
    start, row = functions.start[owner[inside]], np.full(len(offset), -1)
    code = program.instructions_for(start)
    row[inside] = code.index_of(placed_addresses(start + offset[inside]))
    return code, row


def _may_lead(from_: I64, to: I64, code: InstructionTable) -> Bools:
    """(n,): whether instructions branch to others (numbers, -1: outside), or run straight on.

    What leads to itself is passed over (LLVM: DataReader.cpp, recordBranch).
    """
    branches = np.append(0, np.cumsum(code.kind != Kind.OTHER))
    goes_on = ~code.ends_line[from_] & (to > from_) & (branches[to] == branches[from_ + 1])
    is_target = ~code.has_target[from_] | (to < 0) | (code.target[from_] == code.address[to])
    found: Bools = (from_ == to) | goes_on | (code.kind[from_] != Kind.OTHER) & is_target
    return found


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


def weights(fdata: Fdata) -> ProfileWeights:
    """Of functions, what branches from them or was sampled in them; calls go to an entry."""
    functions: Counter[str] = Counter()
    calls: Counter[CallSite] = Counter()
    if fdata.samples is not None:
        s = fdata.samples
        for name, count in zip(s.name.tolist(), s.count.tolist(), strict=True):
            functions[fdata.names[name]] += count
    for (caller, offset, callee, entry), count in _branch_counts(fdata).items():
        functions[caller] += count
        if caller != callee and not entry:
            calls[CallSite(caller, f"{offset:#x}", callee)] += count
    per_sample = 1 if fdata.samples is not None else PER_SAMPLE
    return ProfileWeights("fdata", dict(functions), dict(calls), per_sample)


class FdataReader(Reader[Fdata]):
    """See `Reader`."""

    kind = "BOLT fdata"
    has_counts = True
    merging = Merging(merged, fdata_text.write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return fdata_text.is_fdata(head)

    def read(self, path: Path) -> Fdata:
        """See `Reader`."""
        return fdata_text.read(path)

    def lines(self, content: Fdata) -> Iterator[str]:
        """As llvm-bolt reads them."""
        return lines_written(fdata_text.write, content)

    def of_function(self, content: Fdata, function: str) -> Iterator[str] | None:
        """Lines that begin or end in the function; None if it has no name here."""
        wanted = [i for i, name in enumerate(content.names) if function in (name, _plain(name))]
        if not wanted:
            return None
        return self.lines(content.with_tables(lambda table: table.take(_rows(table, wanted))))

    def functions(self, content: Fdata) -> tuple[str, ...]:
        """All names."""
        return content.names

    def counted(self, content: Fdata) -> U64 | None:
        """See `Reader`."""
        table = content.branches if content.samples is None else content.samples
        return None if table is None else table.count

    def weights(self, content: Fdata) -> ProfileWeights:
        """Of functions, what branches from them or was sampled in them."""
        return weights(content)

    def staleness(self, content: Fdata, program: Program) -> Staleness | None:
        """See `Reader`; a stripped program lacks names, whatever functions it has."""
        return of_fdata(content, program) if program.symbols.are_complete else None

    def overlap(self, base: Fdata, test: Fdata) -> ProfileOverlap | None:
        """See `Reader`."""
        return overlap(base, test)

    def counts(self, content: Fdata, program: Program) -> BranchCounts:
        """See `Reader`."""
        return counts_of_fdata(content, program)

    def carried_to_build(
        self, content: Fdata, old: Program, new: Program, where: str
    ) -> tuple[Fdata, Account]:
        """See `Reader`."""
        from lbr2pgo.profiles.carried.carried_fdata import carried_fdata

        return carried_fdata(content, old, new)

    def derived(self, work: Work, like: Fdata | None) -> Fdata:
        """See `Reader`."""
        return fdata_from_counts(work.counts, work.program)[0]


def _plain(name: str) -> str:
    """A local symbol's name without what BOLT puts behind it (`name/file.c/1`)."""
    return name.partition("/")[0]


def _rows(table: FdataTable, names: list[int]) -> I64:
    """Rows that begin or end in one of these names."""
    found = np.zeros(len(table), dtype=np.bool_)
    for letter, column in zip(table.form, table.columns(), strict=True):
        if letter == "n":
            found |= np.isin(column, names)
    return np.flatnonzero(found)


FDATA = FdataReader()
