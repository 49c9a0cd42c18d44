"""Entries of branch stacks grouped by what one asks for, as `perf report --sort` groups them.

Keys have perf's names (perf: tools/perf/Documentation/perf-report.txt), but for those that tell
apart branches of one line, which perf does not: `srccolumn`, `case` and `condition`. Of a branch
recording those without `_from` and `_to` are of the branch's target, as in perf (util/hist.c,
iter_add_next_branch_entry).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from lbr2pgo.analyses.cases import case_values, conditions
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.evidence.entries import ENTRIES, EntryCounts
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.model.branch_stacks import (
    ABORT,
    IN_TRANSACTION,
    MISPREDICTED,
    MISSING,
    PREDICTED,
    SATURATED,
    cycles_of,
)
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import sums_at

NAME = "sort"
NEEDS = (ENTRIES,)
IGNORED = ("overhead", "sample")
"""perf's names of columns that every table has."""

Described = Callable[[PlacedAddresses], Sequence[Value]]
Values = tuple[list[Value], I64]
"""Different values of a key, and which of them each entry has."""


@dataclass(frozen=True, slots=True)
class _Key:
    title: str
    unit: Unit
    values: Callable[[Evidence, EntryCounts], Values]


def _numbered(values: Sequence[Value]) -> Values:
    numbers: dict[Value, int] = {}
    rows = [numbers.setdefault(value, len(numbers)) for value in values]
    return [*numbers], np.array(rows, np.int64)


def _of_addresses(
    addresses: PlacedAddresses,
    known: Bools,
    file: I64,
    outside: Callable[[int], Value],
    describe: Callable[[PlacedAddresses], Sequence[Value]],
) -> Values:
    """Values by address, each address described once; where it is not known, by file."""
    there = np.where(known, 0, file).astype(np.uint64)
    ends, place = np.unique(np.stack((addresses, there, known)), axis=1, return_inverse=True)
    is_known = ends[2] != 0
    inside = iter(describe(placed_addresses(ends[0][is_known])))
    values = [
        next(inside) if known else outside(number)
        for number, known in zip(ends[1].tolist(), is_known.tolist(), strict=True)
    ]
    told, group = _numbered(values)
    return told, group[place.reshape(-1)]


def _end(kind: str, bit: int) -> Callable[[Evidence, EntryCounts], Values]:
    def values(evidence: Evidence, entries: EntryCounts) -> Values:
        addresses = entries.from_ if bit == FROM else entries.to
        names = evidence.names
        image = os.path.basename(evidence.program.image.layout.path)
        describe: dict[str, tuple[Callable[[int], Value], Described]] = {
            "dso": (names.outside_file, lambda each: names.files(each) or [image] * len(each)),
            "symbol": (names.outside, names.functions),
            "srcline": (lambda _: None, names.lines),
            "srccolumn": (lambda _: None, names.columns),
            "addr": (lambda _: None, lambda each: each.tolist()),
        }
        known = entries.known & np.uint64(bit) != 0
        return _of_addresses(addresses, known, entries.file, *describe[kind])

    return values


def _cases(evidence: Evidence, entries: EntryCounts) -> Values:
    """Values of switches, of jumps through tables."""
    inside = np.flatnonzero(entries.known == FROM | TO)
    code = evidence.flow.instructions
    row = code.index_of(entries.from_[inside])
    jumps = inside[(row >= 0) & (code.kind[row] == Kind.INDIRECT_JUMP)]
    told: list[Value] = [None] * len(entries)
    for at, case in zip(
        jumps.tolist(), case_values(evidence, entries.from_[jumps], entries.to[jumps]), strict=True
    ):
        told[at] = case
    return _numbered(told)


def _taken_if(evidence: Evidence, entries: EntryCounts) -> Values:
    """Conditions of conditional branches."""
    known = entries.known & np.uint64(FROM) != 0
    return _of_addresses(
        entries.from_, known, entries.file, lambda _: None, lambda each: conditions(evidence, each)
    )


def _flag(words: Callable[[int], Value]) -> Callable[[Evidence, EntryCounts], Values]:
    def values(_: Evidence, entries: EntryCounts) -> Values:
        unique, place = np.unique(entries.flags, return_inverse=True)
        told, group = _numbered([words(flags) for flags in unique.tolist()])
        return told, group[place.reshape(-1)]

    return values


def _predicted(flags: int) -> str:
    return "Y" if flags & MISPREDICTED else "N" if flags & PREDICTED else "N/A"


def _cycles(flags: int) -> int | None:
    cycles = cycles_of(flags)
    return None if cycles in (MISSING, SATURATED) else cycles


_ENDS = {
    "dso": ("file", Unit.TEXT),
    "symbol": ("function", Unit.FUNCTION),
    "srcline": ("source line", Unit.LOCATION),
    "srccolumn": ("source column", Unit.LOCATION),
    "addr": ("address", Unit.ADDRESS),
}
KEYS = {
    **{
        kind + suffix: _Key(before + title, unit, _end(kind, bit))
        for kind, (title, unit) in _ENDS.items()
        for suffix, before, bit in (("_from", "from ", FROM), ("_to", "to ", TO), ("", "", TO))
        if kind + suffix != "addr"
    },
    "case": _Key("case", Unit.TEXT, _cases),
    "condition": _Key("taken if", Unit.TEXT, _taken_if),
    "mispredict": _Key("mispredicted", Unit.TEXT, _flag(_predicted)),
    "cycles": _Key("cycles", Unit.CYCLES, _flag(_cycles)),
    "in_tx": _Key("in transaction", Unit.TEXT, _flag(lambda f: "T" if f & IN_TRANSACTION else ".")),
    "abort": _Key("abort", Unit.TEXT, _flag(lambda f: "A" if f & ABORT else ".")),
}
"""All keys by perf's names."""
ALIASES = {"sym": "symbol", "sym_from": "symbol_from", "sym_to": "symbol_to"}


def grouped(evidence: Evidence, keys: Sequence[str], top: int | None = TOP) -> Table:
    """Entries by these keys, most frequent group first; shares are of all that touch the image.

    Of inputs without samples, which hold counts, cycles and transactions are not known.
    """
    entries = evidence.found(ENTRIES)
    entries = _of_counts(evidence) if entries is None else entries
    found = [KEYS[key].values(evidence, entries) for key in keys]
    rows = np.stack([group for _, group in found])
    unique, place = np.unique(rows, axis=1, return_inverse=True)
    count = sums_at(place.reshape(-1), entries.count.astype(np.int64), unique.shape[1])
    order = np.argsort(-count, kind="stable")[:top]
    total = max(int(count.sum()), 1)
    columns: list[tuple[Column, list[Value]]] = [
        (Column("share", "share", Unit.SHARE, FIGURE), (count[order] / total).tolist()),
        (Column("count", "count", Unit.COUNT, FIGURE), count[order].tolist()),
    ]
    for key, (values, _), numbers in zip(keys, found, unique[:, order], strict=True):
        told = [values[number] for number in numbers.tolist()]
        columns.append((Column(key, KEYS[key].title, KEYS[key].unit), told))
    notes = (*evidence.branch_notes(), *evidence.line_notes())
    title = f"Branches by {', '.join(keys)}"
    return build(NAME, title, columns, notes=notes, found=len(count))


def _of_counts(evidence: Evidence) -> EntryCounts:
    """Counts as entries: mispredicted, predicted, and of which neither is known."""
    branches = evidence.flow.branches
    rest = branches.count - np.minimum(branches.mispredicted, branches.count)
    unknown = np.minimum(branches.prediction_unknown, rest)
    parts = ((MISPREDICTED, branches.mispredicted), (PREDICTED, rest - unknown), (0, unknown))
    columns = [np.concatenate([column] * len(parts)) for column in (branches.from_, branches.to)]
    known = np.concatenate([branches.known.astype(np.uint64) & np.uint64(FROM | TO)] * len(parts))
    file = np.concatenate([branches.file] * len(parts))
    flags = np.repeat(np.array([flag for flag, _ in parts], np.uint64), len(branches))
    count = np.concatenate([count for _, count in parts])
    kept = count > 0
    return EntryCounts(*(each[kept] for each in (*columns, known, file, flags, count)))
