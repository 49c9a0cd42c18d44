from __future__ import annotations

import io

import pytest

from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata
from lbr2pgo.profiles.bolt.fdata.written import FDATA

TEXT = b"""\
1 main 3fb 1 f/a.c/1 0 4 221
1 f/a.c/1 8 0 /lib/ld.so 12 0 18
1 other 0 1 other 4 0 2
"""


@pytest.fixture
def content() -> Fdata:
    return fdata_text.parse(io.BytesIO(TEXT), "x.fdata")


def test_lines_are_the_file_s(content: Fdata) -> None:
    assert list(FDATA.lines(content)) == TEXT.decode().splitlines()
    assert list(FDATA.lines(Fdata(()))) == []


@pytest.mark.parametrize(
    ("name", "rows"), [("main", [0]), ("f", [0, 1]), ("f/a.c/1", [0, 1]), ("other", [2])]
)
def test_a_function_has_the_lines_that_begin_or_end_in_it(
    content: Fdata, name: str, rows: list[int]
) -> None:
    found = FDATA.of_function(content, name)
    assert found is not None
    assert list(found) == [TEXT.decode().splitlines()[row] for row in rows]


def test_a_function_that_is_not_there_has_none(content: Fdata) -> None:
    assert FDATA.of_function(content, "mai") is None


def test_all_names_are_told(content: Fdata) -> None:
    assert set(FDATA.functions(content)) == {"main", "f/a.c/1", "/lib/ld.so", "other"}
