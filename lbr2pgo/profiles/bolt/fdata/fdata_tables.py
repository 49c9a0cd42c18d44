"""The tables of an fdata file (see `fdata`), and the order in which BOLT writes their rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I32, I64, U8, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import order_of
from lbr2pgo.support.tables import table

Column = npt.NDArray[np.integer[npt.NBitBase]]

NOT_A_SYMBOL, GLOBAL_SYMBOL, LOCAL_SYMBOL = 0, 1, 2
"""What `…is_symbol` columns hold."""
UNKNOWN = "[unknown]"
"""The name that BOLT gives to code outside of the binary."""


@table
class FdataTable:
    """Columns of equal length; `form` has a letter for each: kind, name, hex or decimal number."""

    form: ClassVar[str]
    first_kind: ClassVar[int] = NOT_A_SYMBOL
    looks: ClassVar[str]

    def __len__(self) -> int:
        return len(self.columns()[0])

    def columns(self) -> list[Column]:
        """The columns in the order of a line's fields."""
        return [getattr(self, column.name) for column in fields(self)]

    def take(self: TableT, rows: I64) -> TableT:
        """The table of these rows, in this order."""
        return type(self)(*(column[rows] for column in self.columns()))


TableT = TypeVar("TableT", bound=FdataTable)


@dataclass(frozen=True)
class FdataBranches(FdataTable):
    """Taken branches and fall-throughs; all columns (n,), names are indices into `Fdata.names`."""

    form = "knxknxdd"
    looks = "0|1|2 NAME OFFSET 0|1|2 NAME OFFSET MISPREDICTIONS COUNT"

    from_is_symbol: U8
    from_name: I32
    from_offset: U64
    to_is_symbol: U8
    to_name: I32
    to_offset: U64
    mispredicted: U64
    count: U64


@dataclass(frozen=True)
class FdataSamples(FdataTable):
    """Places where plain samples hit; all columns (n,)."""

    form = "knxd"
    looks = "0|1|2 NAME OFFSET COUNT"

    is_symbol: U8
    name: I32
    offset: U64
    count: U64


@dataclass(frozen=True)
class FdataLoads(FdataTable):
    """Loads: which instruction read which data; all columns (n,)."""

    form = "knxknxd"
    first_kind = 3
    looks = "3|4|5 NAME OFFSET 3|4|5 NAME OFFSET COUNT"

    from_is_symbol: U8
    from_name: I32
    from_offset: U64
    to_is_symbol: U8
    to_name: I32
    to_offset: U64
    count: U64


@dataclass(frozen=True)
class Fdata:
    """An fdata file: branches or samples, perhaps with loads, over one table of names."""

    names: tuple[str, ...]
    branches: FdataBranches | None = None
    samples: FdataSamples | None = None
    """Not None makes it a `no_lbr` file."""
    loads: FdataLoads | None = None
    bolted: bool = False
    events: tuple[str, ...] = ()
    """Names of the sampled events; only `no_lbr` files hold them."""

    def __post_init__(self) -> None:
        if self.branches is not None and self.samples is not None:
            raise ValueError("branches and samples can't share a file")
        if self.events and self.samples is None:
            raise ValueError("only a file of samples holds event names")
        for each in self.tables():
            self._check(each)

    def _check(self, rows: FdataTable) -> None:
        for letter, column in zip(rows.form, rows.columns(), strict=True):
            limit = {"k": LOCAL_SYMBOL + 1, "n": len(self.names)}.get(letter)
            if limit is None:
                continue
            bad = np.flatnonzero((column < 0) | (column >= limit))
            if len(bad):
                raise ValueError(f"rows {bad[:5].tolist()} have a kind or a name out of range")

    def tables(self) -> list[FdataTable]:
        """The tables that are there, in the order of the file."""
        return [t for t in (self.branches, self.samples, self.loads) if t is not None]

    def with_tables(self, make: Callable[[FdataTable], FdataTable], **others: Any) -> Fdata:
        """The same with what is made of each table that is there, and with other fields."""
        there = {kind: getattr(self, kind) for kind in ("branches", "samples", "loads")}
        made = {kind: make(one) for kind, one in there.items() if one is not None}
        return replace(self, **{**others, **made})


def in_bolt_order(fdata: Fdata, names: Sequence[str] | None = None) -> Fdata:
    """The same rows in perf2bolt's order.

    Grouped by function (of `from`; of `to` where `from` is outside of all symbols), functions by
    the bytes of their names; within one: by place of `from`, then of `to`; branches that come from
    outside last. `names` are those to go by, where the file's own are others.
    """
    keys = fdata.names if names is None else names
    by_name = sorted(range(len(keys)), key=lambda i: os.fsencode(keys[i]))
    rank = np.empty(len(by_name), np.int64)
    rank[by_name] = np.arange(len(by_name))
    return fdata.with_tables(lambda rows: rows.take(_order(rows, rank)))


def _order(rows: FdataTable, rank: I64) -> I64:
    if isinstance(rows, FdataSamples):
        return order_of(rank[rows.name], rows.offset)
    assert isinstance(rows, (FdataBranches, FdataLoads))
    outside = rows.from_is_symbol == NOT_A_SYMBOL
    from_, to = rank[rows.from_name], rank[rows.to_name]
    keys = [np.where(outside, to, from_), outside, rows.from_offset, from_]
    keys += [rows.to_is_symbol != NOT_A_SYMBOL, to, rows.to_offset]
    return order_of(*keys)


@table
class FdataEdges:
    """Rows of fdata: functions (-1: outside of all), and addresses; m rows, with repeats."""

    from_function: I64
    from_: PlacedAddresses
    to_function: I64
    to: PlacedAddresses
    mispredicted: U64
    count: U64
