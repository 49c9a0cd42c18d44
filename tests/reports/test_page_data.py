from __future__ import annotations

from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.reports.page_data import PageTexts, table_data


def test_long_names_are_cut() -> None:
    texts = PageTexts()
    texts.number("x" * 10**6)
    assert len(texts.all()[0]) == 401


def test_texts_are_written_once_and_numbers_stay_numbers() -> None:
    columns = (
        Column("function", "function", Unit.FUNCTION),
        Column("address", "at", Unit.ADDRESS),
        Column("share", "share", Unit.SHARE),
    )
    placed = 2 << 48 | 0x1000
    texts = PageTexts()
    rows = table_data(Table("t", "f", columns, (("f", placed, 1 / 3), ("f", None, 1.0))), texts)
    assert rows["rows"] == [[0, 1, 0.33333], [0, None, 1.0]]
    assert texts.all() == ["f", f"{placed:#x}"]
