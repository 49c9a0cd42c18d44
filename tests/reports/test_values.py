from __future__ import annotations

import pytest

from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit
from lbr2pgo.reports.values import shortened, spare, told


@pytest.mark.parametrize("longest", [5, 6, 20])
def test_a_long_name_keeps_both_ends(longest: int) -> None:
    short = shortened("begin" + "x" * 100 + "end", longest)
    assert len(short) == longest
    assert short.startswith("be")
    assert short.endswith("d")


def test_a_name_that_fits_stays() -> None:
    assert shortened("name", 4) == "name"


def test_columns_go_that_say_least() -> None:
    columns = (
        Column("function", "function", Unit.FUNCTION, FIGURE),
        Column("file", "file", Unit.TEXT, FIGURE),
        Column("address", "address", Unit.ADDRESS),
        Column("count", "count", Unit.COUNT),
        Column("rate", "rate", Unit.SHARE, FIGURE),
        Column("missing", "missing", Unit.COUNT, SPARE),
        Column("line", "line", Unit.LOCATION),
    )
    names = [columns[i].name for i in reversed(spare(columns, {1}))]
    assert names == ["file", "missing", "address", "count", "line"]


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    columns = tuple(Column(name, name, Unit.COUNT) for name in "abc")
    table = Table("t", "T", columns, ((1, None, 0), (2, None, None)))
    assert [column.name for column in told(table).columns] == ["a", "c"]
    assert told(table).rows == ((1, 0), (2, None))
    assert told(Table("t", "T", columns, ())).columns == columns
