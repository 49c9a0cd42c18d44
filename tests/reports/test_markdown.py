"""Markdown as code hosts read it, by a parser of their dialect."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lbr2pgo.analyses.table import DETAIL, FIGURE, Column, Unit, build
from lbr2pgo.reports.markdown import as_markdown
from lbr2pgo.reports.model import Report

HTML = MarkdownIt("commonmark").enable("table")
ODD = ("a|b", "`", "a``b`", "*x* <b>", "operator|| [abi:cxx11]", "\x1b[31m", "&amp;", "\\")


class Cells(HTMLParser):
    """The cells of all tables, and the tags that stand there."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.is_cell = False
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.is_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.is_cell &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.is_cell:
            self.rows[-1][-1] += data


def report(*functions: str) -> Report:
    """With a table of these functions."""
    columns = [
        (Column("share", "share", Unit.SHARE, FIGURE), [0.25] * len(functions)),
        (Column("spare", "spare", Unit.COUNT, DETAIL), [1] * len(functions)),
        (Column("function", "function_name", Unit.FUNCTION, FIGURE), functions),
    ]
    table = build("t", "A *table*", columns, notes=["It has_a note."], found=len(functions) + 1)
    return Report("A title", "", None, (), (), (), (table,), summary=("A sentence.",))


def test_it_reads_as_it_stands() -> None:
    assert as_markdown(report("main")) == (
        "### A title\n\nA sentence.\n\n**A \\*table\\*** (1 of 2)\n\n"
        "| share | function\\_name |\n| ---: | --- |\n| 25.0% | `main` |\n\nIt has\\_a note.\n"
    )


@given(st.lists(st.sampled_from(ODD) | st.text(min_size=1), min_size=1, max_size=4))
def test_no_name_is_markup(functions: list[str]) -> None:
    found = Cells(HTML.render(as_markdown(report(*functions))))
    assert found.tags <= {"h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert [len(row) for row in found.rows] == [2] * (len(functions) + 1)


@pytest.mark.parametrize("name", ODD[:5])
def test_a_name_is_shown_as_it_is(name: str) -> None:
    assert Cells(HTML.render(as_markdown(report(name)))).rows[1][1].strip() == name
