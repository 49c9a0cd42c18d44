"""Tables: frozen data classes of NumPy columns, checked when they are made and read-only after.

`@table` checks what holds for all columns, `__post_init__` what else there is; ValueError says what
is wrong, and in which row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, fields, replace
from functools import cache
from typing import Any, TypeVar, dataclass_transform

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.arrays import I64, U64, Bools, Records
from lbr2pgo.support.dataclass import dataclass

TableT = TypeVar("TableT")

_TYPES = {
    "Bools": np.bool_,
    "U8": np.uint8,
    "U32": np.uint32,
    "U64": np.uint64,
    "I32": np.int32,
    "I64": np.int64,
    "F64": np.float64,
    "ImageAddresses": np.uint64,
    "PlacedAddresses": np.uint64,
    "RuntimeAddresses": np.uint64,
}
"""What elements a column has, by how its field is annotated."""


class Tabular:
    """What is as long as its first column."""

    __slots__ = ()

    def __len__(self) -> int:
        kind: Any = self.__class__
        return len(getattr(self, next(iter(_columns(kind)))))


@cache
def _columns(kind: Any) -> dict[str, np.dtype[Any]]:
    """Fields of a data class that are arrays, or None."""
    types = {field.name: str(field.type).removesuffix(" | None") for field in fields(kind)}
    return {name: np.dtype(_TYPES[of]) for name, of in types.items() if of in _TYPES}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def table(kind: type[TableT]) -> type[TableT]:
    """Make a table, all of whose columns have as many rows, checked before its `__post_init__`."""
    more = vars(kind).get("__post_init__")

    def check(self: Any) -> None:
        seal(self)
        same_length(self)
        if more is not None:
            more(self)

    kind.__post_init__ = check  # type: ignore[attr-defined]
    return dataclass(frozen=True)(kind)


def seal(table: Any) -> None:
    """Check the element types of a table's columns, and let nobody write to them through it.

    Arrays of the caller's stay as they are: the table has views of them.
    """
    for name, wanted in _columns(table.__class__).items():
        column = getattr(table, name)
        if column is None:
            continue
        if column.dtype != wanted:
            raise ValueError(f"{_what(table, name)} must hold {wanted}, not {column.dtype}")
        view = column.view()
        view.flags.writeable = False
        object.__setattr__(table, name, view)


def same_length(table: Any, *names: str, rows: int | None = None) -> None:
    """Check that these columns, by default all, have one row for each of the first, or so many."""
    names = names or tuple(_columns(table.__class__))
    wanted = len(getattr(table, names[0])) if rows is None else rows
    for name in names:
        column = getattr(table, name)
        if column is not None and column.shape != (wanted,):
            raise ValueError(f"{_what(table, name)} has shape {column.shape}, not ({wanted},)")


def ascending(table: Any, *names: str) -> None:
    """Check that each row is above the one before it, compared by these columns in turn."""
    columns = [getattr(table, name) for name in names]
    if not is_ascending(*columns):
        above, equal = _compared(*columns)
        row = int(np.argmin(above)) + 1
        how = "the same as" if equal[row - 1] else "below"
        raise ValueError(f"{_what(table, *names)}: row {row} is {how} the one before it")


def taken(table: TableT, rows: I64 | Bools, *names: str) -> TableT:
    """The same table with these rows of some columns, by default of all."""
    columns = {name: getattr(table, name) for name in names} or {
        name: column
        for name in (field.name for field in fields(table))  # type: ignore[arg-type]
        if isinstance(column := getattr(table, name), np.ndarray)
    }
    kept = {name: column[rows] for name, column in columns.items()}
    return replace(table, **kept)  # type: ignore[type-var]


def end_to_end(parts: Iterable[Any], *names: str) -> list[U64]:
    """Columns of 64 bits of several tables, the rows of each behind those of the one before."""
    every, none = list(parts), np.zeros(0, np.uint64)
    return [np.concatenate([none, *(getattr(part, name) for part in every)]) for name in names]


def stacked(parts: Sequence[TableT]) -> TableT:
    """Tables of one kind, at least one: the rows of each behind those of the one before."""
    kind: Any = type(parts[0])
    names = [field.name for field in fields(kind)]
    table: TableT = kind(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
    return table


def joined(parts: Sequence[Records]) -> Records:
    """Parts of one table; NumPy itself would compare the names of their fields, part by part."""
    if len(parts) == 1:
        return parts[0]
    rows: Records = np.concatenate([part.view(np.uint8) for part in parts]).view(parts[0].dtype)
    return rows


def is_ascending(*columns: npt.NDArray[Any], repeats: bool = False) -> bool:
    """Whether each row is above the one before it, compared by these columns in turn.

    With `repeats`, it may also be the same.

    >>> is_ascending(np.array([1, 1, 2]), np.array([5, 6, 0])), is_ascending(np.array([1, 1]))
    (True, False)
    >>> is_ascending(np.array([1, 1]), repeats=True)
    True
    """
    above, equal = _compared(*columns)
    return bool((above | equal if repeats else above).all())


def _compared(*columns: npt.NDArray[Any]) -> tuple[Bools, Bools]:
    """(n - 1,) each: whether a row is above, and whether it equals, the one before it."""
    size = max(len(columns[0]) - 1, 0)
    above, equal = np.zeros(size, np.bool_), np.ones(size, np.bool_)
    for column in columns:
        above |= equal & (column[1:] > column[:-1])
        equal &= column[1:] == column[:-1]
    return above, equal


def _what(table: Any, *names: str) -> str:
    return f"{type(table).__name__}.{', '.join(names)}"
