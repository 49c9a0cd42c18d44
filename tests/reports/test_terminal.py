from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.evidence import FUNCTIONS, dense, evidence, gather, gather_sources, program, source
from builders.goldens import check
from builders.recordings import PIE, RECORDING, binary, recording
from builders.sources import Sample
from rich.cells import cell_len
from rich.console import Console

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.call_stacks import call_stacks
from lbr2pgo.analyses.callers import callers
from lbr2pgo.analyses.data_accesses import data_accesses
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.fetch_misses import fetch_misses
from lbr2pgo.analyses.paths import paths_across_calls
from lbr2pgo.analyses.start import start
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.evidence.data_accesses import DATA_ACCESSES, DataAccesses
from lbr2pgo.evidence.fetch_misses import FETCH_MISS_FINDING, FetchMisses
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.demangle import short_name
from lbr2pgo.program.elf.data_symbols import data_symbols
from lbr2pgo.reports.bars import bars
from lbr2pgo.reports.build import ReportOptions, make_report, report_of
from lbr2pgo.reports.compare import make_comparison
from lbr2pgo.reports.fitting import fitted
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.readable import readable
from lbr2pgo.reports.terminal import make_console, show, show_briefly, show_table
from lbr2pgo.reports.values import told
from lbr2pgo.support.addresses import placed_addresses


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
    assert "0x1234" in text  # no source line says where it is
    assert "fffff" in text


def test_everything_is_there_where_there_is_room() -> None:
    text = printed(WIDE, 300)
    assert "f" * 100 in text
    assert "0x1234" in text
    assert "too narrow" not in text


def test_of_a_source_line_the_end_is_kept() -> None:
    columns = (Column("l", "source line", Unit.LOCATION), Column("n", "n", Unit.COUNT))
    table = Table("x", "X", columns, (("/very/long/path/to/some/file.c:1234", 5),))
    assert "/very/lo…/file.c:1234" in printed(table, 24)


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


WIDTHS = (80, 100, 120, 200)
GOLDENS = Path(__file__).parent / "goldens"


@cache
def every_table() -> tuple[Table, ...]:
    """One of each name that a report can have, with its first rows."""
    options = ReportOptions((RECORDING,), PIE, libraries=False, source=True, top=3)
    whole = make_report(options)
    classes = ReportOptions((recording("shapes.pie"),), binary("shapes.pie"), libraries=False)
    classes = replace(classes, top=3)
    against = make_comparison(classes, [recording("shapes.static")], binary("shapes.static"))
    call_stack = 1 << BRANCH_FILTER_BITS["call_stack"] | 1
    static = ReportOptions((recording("shapes.static"),), binary("shapes.static"), libraries=False)
    inverted = make_report(replace(static, top=3, only=("outcomes-to-invert",)))
    crossing = [(0x1000, 0x1040), (0x1041, 0x1005), (0x1009, 0x1015), (0x1018, 0x1000)]
    calls = evidence(*(Sample(crossing[::-1] * 2) for _ in range(10)))
    chains = evidence(Sample([(0x1000, 0x1040)], ip=0x1040), filters=call_stack)
    early = Sample([(0x1041, 0x1005), (0x1000, 0x1040)], time=0)
    begun = dense(early, Sample([(0x1016, 0x1005)] * 2, time=10**9))
    sorted_ = make_report(replace(options, sort=("symbol_from", "srcline_to", "mispredict")))
    pages = (readable(each, short_name) for each in (inverted, whole, against, sorted_))
    tables = [
        *(table for page in pages for table in page.tables),
        *(table for view in whole.functions for table in (view.code, view.source) if table),
        *call_stacks(chains),
        paths_across_calls(calls, 3),
        callers(chains, 3),
        *start(begun, 3),
        *data_accesses(accessed(gather((RECORDING,), PIE).evidence), 3),
        *fetch_misses(missing(gather((RECORDING,), PIE).evidence), 3),
        *(bars(timing) for timing in whole.timings[:1]),
    ]
    return tuple({table.name: table for table in tables if table.rows}.values())


def missing(of: Evidence) -> Evidence:
    """The same with misses of the instruction cache, at all of its instructions."""
    address = of.flow.instructions.address
    count = np.arange(len(address), dtype=np.uint64)
    return replace(of, findings={FETCH_MISS_FINDING: FetchMisses(address, count, 3)})


def accessed(of: Evidence) -> Evidence:
    """The same with what two threads of a process loaded and stored in two objects side by side."""
    symbols = data_symbols(of.program.symbols)
    at = int(symbols.start[np.flatnonzero(symbols.end - symbols.start >= np.uint64(64))[0]])
    offset = np.repeat(np.arange(0, 32, 8, dtype=np.uint64), 2)
    thread, is_store = offset.astype(np.int64) // 8 % 2, np.arange(8) % 2 == 1
    count = np.arange(1, 9, dtype=np.uint64)
    first = np.arange(8)
    found = DataAccesses(
        placed_addresses(np.uint64(at) + offset), thread, np.zeros(8, np.int64), is_store, count,
        first, first + 20, 5,
    )  # fmt: skip
    return replace(of, findings={DATA_ACCESSES: found})


def few(tables: tuple[Table, ...]) -> Iterator[Table]:
    for table in tables:
        yield replace(table, placed_rows=table.placed_rows[:6], notes=table.notes[:1])


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_look_as_they_did(width: int) -> None:
    shown = "".join(f"{table.name}{printed(told(table), width)}" for table in few(every_table()))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(cell_len, lines)) <= width
    check(GOLDENS / f"tables-{width}.txt", "\n".join(lines) + "\n")


def test_every_table_has_a_golden() -> None:
    names = {table.name for table in every_table()}
    assert set(registry.TABLES) - names == set()


@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_table_is_about_is_always_there(width: int) -> None:
    for table in map(told, every_table()):
        shown = fitted(table, width)
        for i, column in enumerate(table.columns):
            if column.priority == FIGURE and not column.kind.is_name:
                assert i in shown.widths, (table.name, column.name)
                assert all(len(row[i]) <= shown.widths[i] for row in shown.cells)


def test_a_short_report_keeps_to_its_lines_whatever_it_warns_of(report: Report) -> None:
    whole = make_report(ReportOptions((RECORDING,), PIE, libraries=False))
    doubts = tuple(Doubt(f"Something is wrong, case {i}.") for i in range(30))
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, markup=False, emoji=False)
    show_briefly(replace(whole, notes=doubts), console)
    assert len(out.getvalue().splitlines()) <= 60
    assert "case 29" in out.getvalue()
    assert "Hot functions" in out.getvalue()


@pytest.mark.parametrize(("sentences", "tables"), [(5, 3), (20, 3), (60, 0)])
def test_a_short_report_has_three_tables_as_long_as_there_is_room(
    sentences: int, tables: int
) -> None:
    whole = make_report(ReportOptions((RECORDING,), PIE, libraries=False))
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, markup=False, emoji=False)
    show_briefly(replace(whole, summary=("It ran.",) * sentences), console)
    lines = out.getvalue().splitlines()
    titles = [line for line in lines if re.search(r" \([345] of \d+\)$", line)]
    assert len(titles) == tables
    assert len(lines) <= 60 or not tables


def test_a_short_report_without_rows_says_why(report: Report) -> None:
    out = io.StringIO()
    show_briefly(replace(report, tables=(), first=()), Console(file=out, width=80))
    assert "too narrow for: block, address, leads to" in out.getvalue()
    assert "--full" not in out.getvalue()


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("97", 97), (None, 200), ("wide", 200)])
def test_a_file_is_as_wide_as_columns_says(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    assert make_console().width == width
