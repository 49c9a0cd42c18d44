from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.sources.csv_text import CsvRow, number_of, places_of, read_rows, rows_of
from lbr2pgo.support.errors import InputError


def test_cells_have_no_blanks_around_them_and_lines_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('\ufefffrom , to\n\n"a, b", "two\nlines"\n')
    assert list(read_rows(path)) == [
        CsvRow(1, ("from", "to")), CsvRow(2, ()), CsvRow(4, ("a, b", "two\nlines")),
    ]  # fmt: skip


def test_filled_cells_are_those_that_hold_something() -> None:
    (row,) = rows_of(" a,, b ,\n")
    assert row.filled == ("a", "b")


def test_columns_are_found_in_any_order_case_and_spelling() -> None:
    names = {"missed": ("mispredict count", "mispredicts"), "line": ("source line",), "no": ("x",)}
    header = CsvRow(1, ("Source_Line:", "MISPREDICT  COUNT"))
    assert places_of(header, names) == {"missed": 1, "line": 0}


def test_a_unit_tells_columns_of_one_name_apart() -> None:
    names = {"percent": ("mispredict (%)",), "count": ("mispredict",)}
    assert places_of(CsvRow(1, ("MISPREDICT", "MISPREDICT (%)")), names) == {
        "percent": 1,
        "count": 0,
    }
    assert places_of(CsvRow(1, ("MISPREDICT (%)",)), {"count": ("mispredict",)}) == {"count": 0}


@pytest.mark.parametrize("text", ["", "-1", "1.2.3", "0x10", "nan", "1e16", "9" * 19])
def test_what_is_no_sensible_number_is_none(text: str) -> None:
    assert number_of(text) is None


def test_what_is_no_csv_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + '"' + "x" * 200_000 + '"\n')
    with pytest.raises(InputError, match="no valid CSV") as error:
        list(read_rows(path))
    assert f"{path}:2" in str(error.value)
    with pytest.raises(InputError, match="can't be read"):
        list(read_rows(tmp_path))
