from __future__ import annotations

import numpy as np
import pytest
from builders.evidence import FUNCTIONS, program
from builders.recordings import PIE

from lbr2pgo.analyses.places import OUTSIDE, PlaceNames, short_paths
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import image_array


@pytest.fixture
def names() -> PlaceNames:
    """Of a program without debug information, in which g and h have no symbols."""
    code = program(FUNCTIONS[:2])
    return PlaceNames(code, DebugInfo.open(code.image))


def test_code_without_a_symbol_goes_by_its_address(names: PlaceNames) -> None:
    assert names.functions(image_array([0x1000, 0x1020])) == ["main", "dispatch"]
    (unnamed,) = set(names.functions(image_array([0x1040, 0x1041])))
    assert unnamed.startswith("[0x")
    assert names.functions(image_array([0])) == ["[no code]"]


def test_what_is_not_known_lies_outside(names: PlaceNames) -> None:
    found = names.of(image_array([0x1000, 0]), np.array([True, False]))
    assert found.function == ("main", OUTSIDE)
    assert found.address == (0x1000, None)
    assert found.line == (None, None)


def test_columns_have_the_names_that_they_are_asked_for(names: PlaceNames) -> None:
    columns = names.of(image_array([0x1000])).columns("to_", "to ")
    assert [column.name for column, _ in columns] == ["to_function", "to_line", "to_address"]


def test_lines_are_those_of_the_debug_information() -> None:
    code = Program.open(PIE)
    start = code.regions.start[code.regions.by_name("main")]
    (line,) = PlaceNames(code, DebugInfo.open(code.image)).lines(image_array([int(start)]))
    assert line is not None
    assert line.startswith("interp.c:")


def test_files_of_one_name_keep_their_paths() -> None:
    assert short_paths(["/a/x.c", "/b/x.c", "/b/y.c", "/b/y.c"]) == [
        "/a/x.c", "/b/x.c", "y.c", "y.c",
    ]  # fmt: skip
