"""Fdata added up as `merge-fdata` does.

Rows of the same places are one row of the sum. Files with and without `boltedcollection`, and with
and without `no_lbr`, don't go together. Events stand in the sum, of all files.

Source: BOLT, bolt/tools/merge-fdata/merge-fdata.cpp (mergeLegacyProfiles).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    Column,
    Fdata,
    FdataTable,
    TableT,
    in_bolt_order,
)
from lbr2pgo.profiles.reader import Merged
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.sums import multiplied


def merged(files: Iterable[tuple[Fdata, int]]) -> Merged[Fdata]:
    """The sum of files times their weights, in BOLT's order; memory grows with distinct rows."""
    names: dict[str, int] = {}
    total = Fdata((), bolted=False)
    for number, (content, weight) in enumerate(files):
        new = _weighed(content, weight, names)
        total = new if not number else _added(total, new)
    return Merged(in_bolt_order(total))


def _weighed(content: Fdata, weight: int, names: dict[str, int]) -> Fdata:
    """Times its weight, with places of names in `names`, which takes up new ones."""
    place = [names.setdefault(name, len(names)) for name in content.names]
    numbers = np.array(place, np.int32)

    def weighed(table: FdataTable) -> FdataTable:
        columns = zip(table.form, table.columns(), strict=True)
        renamed = (numbers[c] if letter == "n" else c for letter, c in columns)
        return _sum([type(table)(*renamed)], weight)

    return content.with_tables(weighed, names=tuple(names))


def _added(one: Fdata, other: Fdata) -> Fdata:
    """Both; `other` knows all names."""
    for is_same, word in (
        (one.bolted == other.bolted, "boltedcollection"),
        ((one.samples is None) == (other.samples is None), "no_lbr"),
    ):
        if not is_same:
            raise InputError(f"fdata with and without {word} can't be merged")
    return Fdata(
        other.names, _both(one.branches, other.branches), _both(one.samples, other.samples),
        _both(one.loads, other.loads), one.bolted, tuple(sorted({*one.events, *other.events})),
    )  # fmt: skip


def _both(one: TableT | None, other: TableT | None) -> TableT | None:
    there = [table for table in (one, other) if table is not None]
    return _sum(there) if there else None


def _sum(tables: Sequence[TableT], weight: int = 1) -> TableT:
    """One row for all that have the same places."""
    first = tables[0]
    columns: list[Column] = [
        np.concatenate(parts) for parts in zip(*(t.columns() for t in tables), strict=True)
    ]
    is_count = [letter == "d" for letter in first.form]
    wide: list[U64] = [column.astype(np.uint64) for column in columns]
    keys = [column for column, counts in zip(wide, is_count, strict=True) if not counts]
    values = [column for column, counts in zip(wide, is_count, strict=True) if counts]
    if weight != 1:
        values = [multiplied(value, np.full(len(value), weight, np.uint64)) for value in values]
    keys_once, sums = sum_by(keys, values)
    found = (*keys_once, *sums)  # counts stand last in every form
    return type(first)(*(f.astype(c.dtype) for f, c in zip(found, columns, strict=True)))
