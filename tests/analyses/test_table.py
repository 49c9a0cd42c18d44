from __future__ import annotations

import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from builders.evidence import gather
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.table import Column, Table, Unit, written
from lbr2pgo.support.errors import MissingToolError

SIMULATED = "those of a simulated processor"


def test_rows_are_as_wide_as_there_are_columns() -> None:
    with pytest.raises(ValueError, match="rows of"):
        Table("t", "T", (Column("a", "a", Unit.COUNT),), ((1, 2),))


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_tables_of_an_emulated_run_say_what_was_simulated(name: str) -> None:
    found = gather((RECORDING,), PIE).evidence
    assert found.limits.is_simulated
    for table in registry.run(name, found, None):
        shown = [column for column in table.columns if column.of_processor]
        if not shown:
            assert not any(SIMULATED in note for note in table.notes)
            continue
        assert any(SIMULATED in note for note in table.notes)
        heads = [column.title for column in shown]
        assert table.title.endswith("(simulated)") or all("(simulated)" in head for head in heads)


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_tables_of_hardware_say_nothing_of_simulation(name: str) -> None:
    found = gather((RECORDING,), PIE).evidence
    real = replace(found, limits=replace(found.limits, is_simulated=False))
    for table in registry.run(name, real, None):
        words = (table.title, *table.notes, *(column.title for column in table.columns))
        assert not any("simulated" in word for word in words)


def test_functions_lose_suffixes_that_only_tell_files_apart() -> None:
    assert written(Unit.FUNCTION, "f.__uniq.12.llvm.3") == "f.llvm.3"


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


COLUMNS = (
    Column("function", "function", Unit.FUNCTION),
    Column("address", "address", Unit.ADDRESS),
    Column("count", "executed", Unit.COUNT),
    Column("share", "share", Unit.SHARE),
)
HIGH = 0xFFFF_FFFF_8123_4567
ROWS = (("f<int>", HIGH, 1 << 62, 0.25), ("\x1b[2J", 0x10, None, None))
TABLE = Table("hot", "What is <hot>", COLUMNS, ROWS, found=7)


def test_a_table_is_a_data_frame_of_pandas_with_whole_numbers() -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    assert list(frame) == ["function", "address", "count", "share"]
    assert frame["address"].tolist() == [HIGH, 0x10]
    assert frame["count"][0] == 1 << 62
    assert frame["count"][1] is pandas.NA
    assert frame["share"].isna().tolist() == [False, True]


def test_a_table_is_a_data_frame_of_polars() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    assert TABLE.to_polars().rows() == list(ROWS)


@pytest.mark.parametrize(
    ("method", "missing", "named"),
    [("to_arrow", "pyarrow", "parquet"), ("to_pandas", "pandas", "pandas"),
     ("to_polars", "polars", "polars"), ("to_polars", "pyarrow", "parquet")],
)  # fmt: skip
def test_a_missing_package_is_one_sentence_with_what_installs_it(
    method: str, missing: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "pyarrow" and method != "to_arrow":
        pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, missing, None)  # as Python marks what can't be imported
    with pytest.raises(MissingToolError) as caught:
        getattr(TABLE, method)()
    assert f"needs the package {missing}, which is not installed" in caught.value.what
    assert caught.value.cure == f"Install it: pip install 'lbr2pgo[{named}]'."


def test_a_table_is_short_in_words_and_one_screen_in_a_notebook() -> None:
    assert repr(TABLE) == "<Table hot: 2 of 7 rows of function, address, count, share>"
    page = ElementTree.fromstring(TABLE._repr_html_())
    assert page.findtext("caption") == "What is <hot> (2 of 7 rows)"
    heads, *rows = ([cell.text for cell in row] for row in page.iter("tr"))
    assert heads == ["function", "address", "executed", "share"]
    assert rows[0] == ["f<int>", f"{HIGH:#x}", f"{1 << 62:,}", "25.0%"]
    assert rows[1] == ["\\x1b[2J", "0x10", None, None]
    long = replace(TABLE, placed_rows=ROWS * 500, found=0)
    assert len(list(ElementTree.fromstring(long._repr_html_()).iter("tr"))) == 21
