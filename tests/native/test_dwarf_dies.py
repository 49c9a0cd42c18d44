"""Units, abbreviations and function DIEs, against pyelftools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.programs import compile_program

from lbr2pgo.native import dwarf_dies as kernels
from lbr2pgo.native.dwarf_forms import UNKNOWN
from lbr2pgo.native.dwarf_units import (
    DECL_LINE,
    DECLARATION,
    FUNCTION_SLOTS,
    NAME,
    UNIT,
    Sections,
    find_declaration,
    parse_abbreviations,
    read_die,
    scan_units,
)

FUNCTIONS = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine")
FLAGS = {
    "gcc dwarf 2": ("g++", "-g", "-gdwarf-2", "-gstrict-dwarf"),
    "gcc dwarf 4": ("g++", "-g", "-gdwarf-4"),
    "gcc dwarf 5": ("g++", "-g"),
    "clang dwarf 4": ("clang++-22", "-g1", "-gdwarf-4"),
    "clang dwarf 5": ("clang++-22", "-g"),
    "clang 64-bit dwarf": ("clang++-22", "-g", "-gdwarf64"),
}


@pytest.fixture(scope="module", params=FLAGS.values(), ids=FLAGS)
def compiled(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
) -> Path:
    compiler, *flags = request.param
    return compile_program(tmp_path_factory.mktemp("dies") / "program", tool(compiler), *flags)


def test_function_dies_and_their_ranges_are_those_of_pyelftools(compiled: Path) -> None:
    assert compare_with_pyelftools(compiled) > 20


def test_sqlite_has_the_function_dies_of_pyelftools(corpus: Callable[[str], Path]) -> None:
    assert compare_with_pyelftools(corpus("sqlite/sq.zst")) > 10_000


def compare_with_pyelftools(path: Path) -> int:
    from elftools.elf.elffile import ELFFile

    from lbr2pgo.program.dwarf.container import Container, SectionReader
    from lbr2pgo.program.elf.image import Image

    container = Container.open(str(path), SectionReader(Image.open(path), {}))
    compared = 0
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False)
        for index, unit in enumerate(dwarf.iter_CUs()):
            assert container.units["offset"][index] == unit.cu_offset
            dies, ranges, ending = kernels.walk_unit(
                container.sections, container.units[index], container.declarations(index), 1 << 20
            )
            assert ending == kernels.COMPLETE
            expected = list(functions(unit))
            parents = [int(dies["offset"][p]) if p >= 0 else None for p in dies["parent"]]
            assert [
                (*row, parent)
                for row, parent in zip(
                    zip(dies["offset"].tolist(), dies["is_subprogram"].tolist(), strict=True),
                    parents,
                    strict=True,
                )
            ] == [(die.offset, die.tag == FUNCTIONS[0], parent) for die, parent in expected]
            assert ranges.tolist() == [
                [low, high, row]
                for row, (die, _) in enumerate(expected)
                for low, high in ranges_of(die, dwarf)
            ]
            compared += len(ranges)
        assert len(container.units) == index + 1
    return compared


def functions(unit: Any) -> Iterator[tuple[Any, int | None]]:
    """Function DIEs of a unit, each with the offset of the one around it."""
    for die in unit.iter_DIEs():
        if die.tag in FUNCTIONS:
            around = die.get_parent()
            while around is not None and around.tag not in FUNCTIONS:
                around = around.get_parent()
            yield die, around.offset if around is not None else None


def ranges_of(die: Any, dwarf: Any) -> Iterator[tuple[int, int]]:
    """Address ranges as pyelftools decodes them."""
    attributes = die.attributes
    if "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in attributes:
        base = die.cu.get_top_DIE().attributes["DW_AT_low_pc"].value
        lists = dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, die.cu):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                yield start + entry.begin_offset, start + entry.end_offset


# One unit by hand: a root, a function in it, and what may be wrong with them.


def u8(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


ABBREVIATIONS = (
    b"\x01\x11\x01\0\0"  # 1: compile unit with children
    b"\x02\x2e\0\x03\x08\x3b\x21\x2a\x11\x01\x12\x0b\0\0"  # 2: name, line 42, low and high pc
    b"\x03\x2e\0\x03\x7e\0\0"  # 3: a name of a form that does not exist
    b"\0"
)
ROOT = b"\x01"
FUNCTION = b"\x02main\0" + (0x1000).to_bytes(8, "little") + b"\x10"


def sections(dies: bytes, abbreviations: bytes = ABBREVIATIONS) -> Sections:
    body = b"\x04\0" + bytes(4) + b"\x08" + dies
    info = len(body).to_bytes(4, "little") + body
    return Sections(u8(info), u8(abbreviations), u8(b""), u8(b""), u8(b""))


def unit_of(parts: Sections) -> tuple[Any, np.ndarray]:
    units = np.zeros(2, UNIT)
    assert scan_units(parts.info, 0, units) == (1, len(parts.info))
    table = np.zeros(8, DECLARATION)
    count = parse_abbreviations(parts.abbrev, units[0], table)
    return units[0], table[:count]


def walk(dies: bytes, limit: int = 100) -> tuple[list[int], list[list[int]], int]:
    parts = sections(dies)
    rows, ranges, ending = kernels.walk_unit(parts, *unit_of(parts), limit)
    return rows["offset"].tolist(), ranges.tolist(), ending


FIRST = 12  # the header's 11 bytes and the root's one


def test_a_unit_by_hand() -> None:
    assert walk(ROOT + FUNCTION + b"\0") == ([FIRST], [[0x1000, 0x1010, 0]], kernels.COMPLETE)


@pytest.mark.parametrize(
    ("rest", "ending"),
    [
        (FUNCTION[:8], kernels.DAMAGED),
        (b"\x80", kernels.DAMAGED),
        (b"\x07", kernels.NO_DECLARATION),
        (b"\x03abc", kernels.UNKNOWN_FORM),
    ],
)
def test_what_stands_before_damage_is_kept(rest: bytes, ending: int) -> None:
    assert walk(ROOT + FUNCTION + rest) == ([FIRST], [[0x1000, 0x1010, 0]], ending)


def test_a_list_of_ranges_that_never_ends_is_cut() -> None:
    assert walk(ROOT + FUNCTION * 9 + b"\0", limit=4)[2] == kernels.TOO_MANY_RANGES


def test_a_die_is_read_by_its_offset_alone() -> None:
    parts = sections(ROOT + FUNCTION + b"\0")
    unit, declarations = unit_of(parts)
    forms, values = np.zeros(FUNCTION_SLOTS, np.int16), np.zeros(FUNCTION_SLOTS, np.uint64)
    assert read_die(parts, unit, declarations, FIRST, forms, values) == kernels.TAG_SUBPROGRAM
    assert values[DECL_LINE] == 42
    assert parts.info[int(values[NAME])] == ord("m")
    for nowhere in (0, 5, len(parts.info), 1 << 40):
        assert read_die(parts, unit, declarations, nowhere, forms, values) == 0
        assert not forms.any()


def test_declarations_know_their_size_where_it_is_fixed() -> None:
    _, declarations = unit_of(sections(ROOT))
    assert declarations["code"].tolist() == [1, 2, 3]
    assert declarations["length"].tolist() == [0, -1, UNKNOWN]


def test_tables_that_overlap_over_and_over_are_read_no_more() -> None:
    from lbr2pgo.program.dwarf.abbreviations import Abbreviations

    tables = Abbreviations(u8(b"\x01\x2e\0\0\0" * 200 + b"\0"))
    unit = np.zeros(1, UNIT)
    unit["version"], unit["address_size"], unit["offset_size"] = 4, 8, 4
    rows = []
    for start in range(100):
        unit["abbrev"] = 5 * start
        rows.append(len(tables.table(unit[0])))
    assert rows[:3] == [200, 199, 198]
    assert rows[-1] == 0
    assert sum(rows) < 2 * 1001
    unit["abbrev"] = 0
    assert len(tables.table(unit[0])) == 200


@pytest.mark.parametrize("codes", [[1, 2, 3], [2, 5, 1 << 40]])
def test_declarations_are_found_by_code(codes: list[int]) -> None:
    table = np.zeros(len(codes), DECLARATION)
    table["code"] = codes
    for i, code in enumerate(codes):
        assert find_declaration(table, np.uint64(code)) == i
    assert find_declaration(table, np.uint64(4)) == -1


@pytest.mark.parametrize(
    "info",
    [
        b"\x05\0\0",  # cut in the length
        b"\xff\0\0\0\x04\0" + bytes(5),  # longer than the section
        b"\x08\0\0\0\x09\0" + bytes(6),  # version 9
        b"\x08\0\0\0\x04\0" + bytes(4) + b"\x03\0",  # addresses of 3 bytes
        b"\x03\0\0\0\x04\0\0",  # too short for its header
        b"\xf3\xff\xff\xff" + bytes(20),  # a reserved length
    ],
)
def test_scanning_stops_at_a_header_that_makes_no_sense(info: bytes) -> None:
    units = np.zeros(4, UNIT)
    good = bytes(sections(ROOT).info)
    assert scan_units(u8(good + info), 0, units) == (1, len(good))
