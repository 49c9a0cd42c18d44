"""`Table`: what every analysis returns, whoever shows it.

A table names its columns and says what kind of value each holds; a kind fixes the unit and the
JSON type, so that scripts and pages need to know kinds only, and not analyses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum, StrEnum
from html import escape
from typing import TYPE_CHECKING, Any

from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.support.addresses import PlacedAddress, in_file, shown
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.extras import extra
from lbr2pgo.support.printable import printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SIMULATED = (
    "Recorded under the software LBR: predictions and cycles are those of a simulated processor, "
    "not of any real one."
)

Value = str | int | float | None
"""None where something can't be known; the table's notes say why."""


class Unit(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    FUNCTION = "function"
    """A function's name, as linked, or a word in brackets (`[outside]`): data, never markup."""
    LOCATION = "location"
    """`file:line` in source code: data too."""
    ADDRESS = "address"
    """A placed address, an int; `0x…` in JSON, CSV and on screens. In `placed_rows` it has a slot
    (`support.addresses`), which nothing that users see has."""
    COUNT = "count"
    """A whole number of events, an int."""
    SHARE = "share"
    """A part of a whole, a float from 0 to 1."""
    RATE = "rate"
    """A float per unit that the title names."""
    CYCLES = "cycles"
    """Clock cycles, an int or a float."""

    @property
    def is_name(self) -> bool:
        """Whether values are texts for people, and may be cut off where there is no room."""
        return self is not Unit.ADDRESS and self not in NUMBERS


@dataclass(frozen=True, slots=True)
class Number:
    """How the numbers of a kind are kept and written."""

    arrow: str
    """Type of their column in Arrow."""
    digits: int
    """Behind the decimal point of a number that is not whole (of shares: of per cent)."""


NUMBERS = {
    Unit.COUNT: Number("int64", 0),
    Unit.SHARE: Number("float64", 1),
    Unit.RATE: Number("float64", 2),
    Unit.CYCLES: Number("float64", 1),
}
"""Kinds of columns that hold numbers: terminal, page, JSON, CSV and Arrow go by these."""


def percentage(value: float) -> str:
    """Per cent; what is not quite none, or not quite all, is not called so.

    >>> percentage(0.5), percentage(0.0), percentage(0.0001), percentage(0.9999)
    ('50.0%', '0.0%', '<0.1%', '>99.9%')
    >>> percentage(-0.0001)
    '>-0.1%'
    """
    if 0 < abs(value) < 0.0005:
        return "<0.1%" if value > 0 else ">-0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


_WRITTEN: dict[Unit, Callable[[Any], str]] = {
    Unit.FUNCTION: without_unique_suffix,
    Unit.ADDRESS: shown,
    Unit.SHARE: percentage,
}


def written(kind: Unit, value: Value) -> str:
    """A value of this kind as people read it."""
    if kind in _WRITTEN:
        return _WRITTEN[kind](value)
    if kind not in NUMBERS:
        return str(value)
    return f"{value:,.{NUMBERS[kind].digits}f}" if isinstance(value, float) else f"{value:,}"


class Priority(IntEnum):
    """How long a column stays where there is no room for all of a table."""

    FIGURE = 0
    """Always: what the table is about, and of which place."""
    DETAIL = 1
    SPARE = 2
    """It is the first to go, after those that are the same in each row."""


FIGURE, DETAIL, SPARE = Priority


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `name` is for scripts and never changes, `title` is for people."""

    name: str
    title: str
    kind: Unit
    priority: Priority = DETAIL
    of_processor: bool = False
    """Whether it shows what a processor did with the code (predictions, cycles), and not the code's
    own course: a recorder that emulates can only simulate that."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under typed columns, most important first."""

    name: str
    """Unique in a report, of the form `analysis` or `analysis-part`; for scripts and links."""
    title: str
    columns: tuple[Column, ...]
    placed_rows: tuple[tuple[Value, ...], ...]
    """`rows` whose addresses have the slot of their file, for links between tables."""
    notes: tuple[str, ...] = ()
    """What can't be known and why, and how to read the numbers; whole sentences."""
    found: int = 0
    """How many rows there are in all; `rows` may hold only the first of them."""

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.placed_rows} - {len(self.columns)}
        if widths:
            raise ValueError(f"{self.name}: rows of {sorted(widths)} values, {self.columns}")
        if self.found < len(self.placed_rows):
            object.__setattr__(self, "found", len(self.placed_rows))

    def __len__(self) -> int:
        return len(self.placed_rows)

    @property
    def rows(self) -> tuple[tuple[Value, ...], ...]:
        """Values by column; addresses are those in their file."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[tuple[Value, ...]]:
        at = {i for i, column in enumerate(self.columns) if column.kind is Unit.ADDRESS}
        for row in self.placed_rows:
            plain = (_plain(value) if i in at else value for i, value in enumerate(row))
            yield tuple(plain) if at else row

    def as_simulated(self, *, in_title: bool) -> Table:
        """The same of a recording without a real processor, which it says.

        `in_title`: the table has no other matter than what was simulated; else its columns say it.
        """
        if not any(column.of_processor for column in self.columns):
            return self
        notes = (*self.notes, SIMULATED)
        if in_title:
            return replace(self, title=f"{self.title} (simulated)", notes=notes)
        columns = tuple(
            replace(column, title=f"{column.title} (simulated)") if column.of_processor else column
            for column in self.columns
        )
        return replace(self, columns=columns, notes=notes)

    def column(self, name: str) -> tuple[Value, ...]:
        """All values of one column."""
        at = [column.name for column in self.columns].index(name)
        return tuple(row[at] for row in self.rows)

    def placed_column(self, name: str) -> tuple[Value, ...]:
        """All values of one column, of `placed_rows`."""
        at = [column.name for column in self.columns].index(name)
        return tuple(row[at] for row in self.placed_rows)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self._extent} of {', '.join(c.name for c in self.columns)}>"

    def _repr_html_(self) -> str:
        """One screen of it, for notebooks."""
        heads = "".join(f"<th>{_html(column.title)}</th>" for column in self.columns)
        kinds = [column.kind for column in self.columns]
        rows = (map(_cell, kinds, row) for row in self.placed_rows[:_SCREEN])
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        caption = f"{_html(self.title)} ({self._extent})"
        return f"<table><caption>{caption}</caption><tr>{heads}</tr>{body}</table>"

    @property
    def _extent(self) -> str:
        of_all = f" of {self.found:,}" if self.found > len(self) else ""
        return f"{len(self):,}{of_all} rows"

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, in which whole numbers stay whole beside what is not known.

        Raises MissingToolError where pandas or pyarrow is not installed.
        """
        pandas: Any = extra("pandas", "pandas", "a data frame of pandas")
        arrow = self.to_arrow()
        kinds = {"int64": pandas.Int64Dtype(), "uint64": pandas.UInt64Dtype()}
        frame: pandas.DataFrame = arrow.to_pandas(types_mapper=lambda kind: kinds.get(str(kind)))
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame of Polars; raises MissingToolError where it or pyarrow is not installed."""
        polars: Any = extra("polars", "polars", "a data frame of Polars")
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """The same for pandas, Polars and their like; addresses are unsigned numbers.

        What the table says of itself (title, notes, units) is in the schema's metadata. Raises
        MissingToolError where pyarrow is not installed.
        """
        arrow: Any = extra("pyarrow", "parquet", "a table of Arrow")
        types = {kind: arrow.type_for_alias(number.arrow) for kind, number in NUMBERS.items()}
        types[Unit.ADDRESS] = arrow.uint64()
        fields = [
            arrow.field(
                c.name,
                types.get(c.kind, arrow.string()),
                metadata={"title": c.title, "unit": str(c.kind)},
            )
            for c in self.columns
        ]
        about = {"title": self.title, "notes": "\n".join(self.notes), "found": str(self.found)}
        columns = [
            arrow.array(self.column(c.name), f.type)
            for c, f in zip(self.columns, fields, strict=True)
        ]
        table: pyarrow.Table = arrow.table(columns, arrow.schema(fields, metadata=about))
        return table

    def records(self) -> Iterator[dict[str, Value]]:
        """Each row by its columns' names."""
        names = [column.name for column in self.columns]
        for row in self._rows():
            yield dict(zip(names, row, strict=True))


_SCREEN = 20
"""Rows that a notebook shows."""


def _cell(kind: Unit, value: Value) -> str:
    return f"<td>{'' if value is None else _html(written(kind, value))}</td>"


def _html(text: str) -> str:
    return escape(printable(text))


def _plain(address: Value) -> Value:
    return in_file(PlacedAddress(address)) if isinstance(address, int) else address


def build(
    name: str,
    title: str,
    columns: Sequence[tuple[Column, Sequence[Value]]],
    *,
    notes: Sequence[str] = (),
    found: int = 0,
) -> Table:
    """A table from columns of equal length, each with its values as plain Python objects."""
    values = [values for _, values in columns]
    rows = tuple(zip(*values, strict=True))
    return Table(name, title, tuple(column for column, _ in columns), rows, tuple(notes), found)


def empty(name: str, title: str, columns: Sequence[Column], *notes: str) -> Table:
    """A table that can't be filled, and why."""
    return Table(name, title, tuple(columns), (), notes)
