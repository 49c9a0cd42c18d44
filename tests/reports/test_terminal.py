from __future__ import annotations

import io

import pytest
from builders.elf import Function
from builders.evidence import FUNCTIONS, gather_sources, program, source
from builders.recordings import PIE, RECORDING
from builders.sources import Sample
from rich.cells import cell_len
from rich.console import Console

from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.reports.build import ReportOptions, make_report, report_of
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.terminal import show, show_table


def printed(what: Report | Table, width: int, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, highlight=False, markup=False, emoji=False
    )
    (show if isinstance(what, Report) else show_table)(what, console)  # type: ignore[operator]
    return out.getvalue()


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, libraries=False, function="run"))


@pytest.mark.parametrize("width", [60, 80, 100, 132, 200])
def test_it_fits_the_width(report: Report, width: int) -> None:
    assert max(cell_len(line) for line in printed(report, width).splitlines()) <= width


@pytest.mark.parametrize("width", [40, 20])
def test_a_very_narrow_terminal_is_no_error(report: Report, width: int) -> None:
    assert printed(report, width)


def test_there_is_no_colour_where_there_is_no_terminal(report: Report) -> None:
    assert "\x1b" not in printed(report, 100)
    assert "\x1b" in printed(report, 100, terminal=True)


NUMBERS = tuple(Column(f"n{i}", f"number {i}", Unit.COUNT) for i in range(6))
WIDE = Table(
    "wide",
    "Wide",
    (
        *NUMBERS,
        Column("f", "function", Unit.FUNCTION),
        Column("a", "address", Unit.ADDRESS),
    ),
    ((*(10**9 + i for i in range(6)), "f" * 100, 0x1234),),
)


def test_numbers_are_whole_or_absent() -> None:
    text = printed(WIDE, 60)
    for i in range(6):
        assert (f"{10**9 + i:,}" in text) or f"number {i}" in text.split("too narrow for:")[1]
    assert "1,000,000,000" in text
    assert "0x1234" not in text
    assert "fffff" in text


def test_everything_is_there_where_there_is_room() -> None:
    text = printed(WIDE, 300)
    assert "f" * 100 in text
    assert "0x1234" in text
    assert "too narrow" not in text


def test_of_a_source_line_the_end_is_kept() -> None:
    columns = (Column("l", "source line", Unit.LOCATION), Column("n", "n", Unit.COUNT))
    table = Table("x", "X", columns, (("/very/long/path/to/some/file.c:1234", 5),))
    text = printed(table, 24)
    assert ".c:1234" in text
    assert "/very" not in text


def test_a_cut_table_says_how_much_there_is() -> None:
    table = Table("x", "X", (Column("n", "n", Unit.COUNT),), ((1,), (2,)), found=5000)
    assert "X (2 of 5,000)" in printed(table, 80)


def test_an_empty_table_shows_its_notes() -> None:
    text = printed(Table("x", "X", (Column("n", "n", Unit.COUNT),), (), ("Nobody knows.",)), 80)
    assert "nothing to show" in text
    assert "note: Nobody knows." in text


@pytest.mark.parametrize(
    "name",
    ["evil\x1b[31m", "a\rb", "turned\u202ename", "[bold]loud[/bold]", "[/nope]", ":smile:",
     "tab\there"],
)  # fmt: skip
def test_hostile_names_are_shown_as_they_are(name: str) -> None:
    functions = (Function(name, 0x1000, 0x1A), *FUNCTIONS[1:])
    gathered = gather_sources([source(Sample([(0x1016, 0x1005)]))], program(functions))
    text = printed(report_of(gathered, ReportOptions((RECORDING,), PIE, libraries=False)), 300)
    for character in "\x1b\r\t\u202e":
        assert character not in text
    assert name.encode("unicode_escape").decode() in text


def test_a_tree_is_indented() -> None:
    columns = (
        Column("depth", "depth", Unit.COUNT),
        Column("f", "function", Unit.FUNCTION),
    )
    text = printed(Table("x", "X", columns, ((0, "main"), (1, "callee"))), 80)
    assert "  callee" in text


def test_shares_that_are_not_quite_nothing() -> None:
    columns = (Column("s", "share", Unit.SHARE),)
    text = printed(Table("x", "X", columns, ((0.00001,), (0.0,), (1.0,), (0.99999,))), 80)
    assert [word for word in text.split() if "%" in word] == ["<0.1%", "0.0%", "100.0%", ">99.9%"]
