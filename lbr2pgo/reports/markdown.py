"""A report's tables in Markdown, as code hosts show it in comments.

Source: GitHub Flavored Markdown, "Tables (extension)", "Code spans".
"""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.analyses.table import FIGURE, NUMBERS, Column, Table, Value, written
from lbr2pgo.reports.model import Report
from lbr2pgo.support.printable import printable


def as_markdown(report: Report) -> str:
    """Its title, what is to be said first, and of each table the columns that always stay."""
    lines = [f"### {text(report.title)}"]
    for sentence in report.summary:
        lines += ["", text(sentence)]
    for table in report.tables:
        lines += ["", *_table(table)]
    return "\n".join(lines) + "\n"


def text(words: str) -> str:
    r"""Words in which nothing is markup.

    >>> text("a_b <c>")
    'a\\_b \\<c\\>'
    """
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$@" else c for c in printable(words))


def _table(table: Table) -> Iterator[str]:
    of_all = f" ({len(table):,} of {table.found:,})" if table.found > len(table) else ""
    yield f"**{text(table.title)}**{of_all}"
    yield ""
    kept = [i for i, column in enumerate(table.columns) if column.priority == FIGURE]
    columns = [table.columns[i] for i in kept]
    yield _row(text(column.title) for column in columns)
    yield _row("---" if column.kind.is_name else "---:" for column in columns)
    for row in table.placed_rows:
        yield _row(_cell(table.columns[i], row[i]) for i in kept)
    for note in table.notes:
        yield ""
        yield text(note)


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(column: Column, value: Value) -> str:
    """Numbers as they are, names as code: between more backticks than there are in them."""
    if value is None:
        return ""
    shown = printable(written(column.kind, value))
    if column.kind in NUMBERS:
        return shown
    fence = "`" * (1 + max(map(len, _ticks(shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown.replace('|', chr(92) + '|')}{pad}{fence}"


def _ticks(words: str) -> Iterator[str]:
    from re import findall

    return iter(findall("`+", words))
