from __future__ import annotations

import pytest

from lbr2pgo.analyses.table import DETAIL, FIGURE, SPARE, Column, Table, Unit
from lbr2pgo.reports.fitting import cut, fitted

LOCATION = Column("line", "line", Unit.LOCATION, FIGURE)
FUNCTION = Column("function", "function", Unit.FUNCTION, FIGURE)


def table(*rows: tuple[int, ...], priorities: tuple[int, ...]) -> Table:
    columns = tuple(
        Column(f"n{i}", f"n{i}", Unit.COUNT, (FIGURE, DETAIL, SPARE)[p])
        for i, p in enumerate(priorities)
    )
    return Table("x", "X", columns, rows)


@pytest.mark.parametrize(
    ("available", "shown"), [(40, [0, 1, 2, 3]), (19, [0, 1, 2]), (12, [0, 2]), (1, [2])]
)
def test_columns_go_by_their_priority_constant_ones_first(available: int, shown: list[int]) -> None:
    wide = table((1000, 1001, 1002, 7000), (2000, 2001, 2002, 7000), priorities=(1, 2, 0, 1))
    fit = fitted(wide, available)
    if available == 19:  # n3 is the same in each row
        assert sorted(fit.widths) == shown
        assert fit.left_out(wide.columns) == ["n3 (7,000)"]
    else:
        assert sorted(fit.widths) == shown


@pytest.mark.parametrize("width", range(8, 40))
def test_a_line_number_is_never_cut(width: int) -> None:
    short = cut(LOCATION, "/usr/src/postgres/backend/tables/split.c:1234", width)
    assert short.endswith(":1234")
    assert len(short) <= width


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        (
            "std::map<int, std::vector<long>>::insert",
            40,
            "std::map<int, std::vector<long>>::insert",
        ),
        ("std::map<int, std::vector<long>>::insert", 36, "std::map<int, std::vector<…>>::insert"),
        ("std::map<int, std::vector<long>>::insert", 25, "std::map<…>::insert"),
        ("std::map<int, std::vector<long>>::insert", 12, "std::m…nsert"),
    ],
)
def test_of_a_function_arguments_go_first(name: str, width: int, short: str) -> None:
    assert cut(FUNCTION, name, max(width, len(short))) == short


def test_names_are_wide_before_details_are_shown() -> None:
    wide = Table(
        "x", "X", (FUNCTION, *table(priorities=(1, 1, 1)).columns),
        (("f" * 60, 10**9, 10**9, 1), ("g" * 60, 10**8, 10**8, 2)),
    )  # fmt: skip
    fit = fitted(wide, 45)
    assert fit.widths[0] >= 28


@pytest.mark.parametrize("has_lines", [True, False])
def test_an_address_stays_where_no_source_line_tells_rows_apart(has_lines: bool) -> None:
    line = (Column("line", "source line", Unit.LOCATION, FIGURE),) if has_lines else ()
    columns = (
        FUNCTION, *line, Column("address", "address", Unit.ADDRESS, DETAIL),
        *table(priorities=(DETAIL, DETAIL)).columns,
    )  # fmt: skip
    rows = [
        (f"f{i}", *([f"a.c:{i}"] if has_lines else []), 0x4000 + i, 10**9 + i, 10**9 + i)
        for i in range(3)
    ]
    fit = fitted(Table("x", "X", columns, tuple(rows)), 42 if has_lines else 30)
    assert ([c.name for c in columns].index("address") in fit.widths) is not has_lines


MODES = "280 49 % · 305 39 % · 80 12 %"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_words_that_a_table_is_about_are_whole_before_names_are(width: int) -> None:
    columns = (
        Column("count", "measured", Unit.COUNT, FIGURE),
        Column("modes", "modes", Unit.TEXT, FIGURE),
        Column("function", "function", Unit.FUNCTION), LOCATION,
        Column("address", "address", Unit.ADDRESS, SPARE),
    )  # fmt: skip
    rows = tuple(
        (
            n,
            MODES.replace("12", f"{n % 97}"),
            f"a_function_with_a_name_{n}_that_is_long",
            f"some/where/a_file.c:{n}",
            n,
        )
        for n in (1000, 2000)
    )
    fit = fitted(Table("x", "X", columns, rows), width)
    assert fit.widths[1] == len(MODES)
    assert (4 in fit.widths) == (width > 100)
