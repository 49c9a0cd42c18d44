from __future__ import annotations

import pytest

from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.reports.values import shortened, told, written


@pytest.mark.parametrize("longest", [5, 6, 20])
def test_a_long_name_keeps_both_ends(longest: int) -> None:
    short = shortened("begin" + "x" * 100 + "end", longest)
    assert len(short) == longest
    assert short.startswith("be")
    assert short.endswith("d")


def test_a_name_that_fits_stays() -> None:
    assert shortened("name", 4) == "name"


def test_functions_lose_suffixes_that_only_tell_files_apart() -> None:
    assert written(Unit.FUNCTION, "f.__uniq.12.llvm.3") == "f.llvm.3"


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    columns = tuple(Column(name, name, Unit.COUNT) for name in "abc")
    table = Table("t", "T", columns, ((1, None, 0), (2, None, None)))
    assert [column.name for column in told(table).columns] == ["a", "c"]
    assert told(table).rows == ((1, 0), (2, None))
    assert told(Table("t", "T", columns, ())).columns == columns


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Unit.COUNT, 1234567, "1,234,567"),
        (Unit.SHARE, 0.25, "25.0%"),
        (Unit.RATE, 1.5, "1.50"),
        (Unit.CYCLES, 1234.56, "1,234.6"),
        (Unit.CYCLES, 12, "12"),
        (Unit.ADDRESS, 0x1234, "0x1234"),
        (Unit.LOCATION, "a.c:1", "a.c:1"),
    ],
)
def test_a_value_is_written_by_its_kind(kind: Unit, value: float | str, text: str) -> None:
    assert written(kind, value) == text
