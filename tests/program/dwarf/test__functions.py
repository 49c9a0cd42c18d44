"""Functions of units against pyelftools, the map from addresses to them, and their descriptions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.dwarf import abbreviation, dwarf, u64, unit, words
from builders.fixtures import Corpus, Tool
from builders.programs import compile_program
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf import _functions as native
from lbr2pgo.program.dwarf import _units as endings
from lbr2pgo.program.dwarf._units import RANGE
from lbr2pgo.program.dwarf.loader import SectionReader
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.program.elf.image import Image

SUBPROGRAM, INLINED = "DW_TAG_subprogram", "DW_TAG_inlined_subroutine"
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
    tool: Tool,
) -> Path:
    compiler, *flags = request.param
    return compile_program(tmp_path_factory.mktemp("dies") / "program", tool(compiler), *flags)


def test_functions_and_their_ranges_are_those_of_pyelftools(compiled: Path) -> None:
    assert compare_with_pyelftools(compiled) > 20


def test_sqlite_has_the_functions_of_pyelftools(corpus: Corpus) -> None:
    assert compare_with_pyelftools(corpus("sqlite/sq.zst")) > 10_000


def compare_with_pyelftools(path: Path) -> int:
    """Compare all functions that hold an address, and those of every other one; ranges seen."""
    from elftools.elf.elffile import ELFFile

    found = Dwarf(str(path), SectionReader(Image.open(path), Counter()))
    compared = 0
    with path.open("rb") as file:
        read = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False)
        units = list(read.iter_CUs())
        assert found.units["offset"].tolist() == [each.cu_offset for each in units]
        for index, each in enumerate(units):
            found.load([index])
            expected = [(die, around, [*ranges_of(die, read)]) for die, around in functions(each)]
            assert subprograms_of(found, index) == [
                (low, high, die.offset)
                for die, _, ranges in expected
                if die.tag == SUBPROGRAM
                for low, high in ranges
            ]
            starts = sorted(
                {low for _, _, ranges in expected for low, high in ranges if low < high}
            )
            for asked in (starts, starts[::2], starts[5:6], []):
                assert around_of(found, index, asked) == wanted(expected, set(asked))
            compared += sum(len(ranges) for _, _, ranges in expected)
    return compared


def subprograms_of(found: Dwarf, index: int) -> list[tuple[int, int, int]]:
    ranges, ending = native.subprogram_ranges(
        found.with_dies(index), found.units, index, found.abbreviations, 1 << 20
    )
    assert ending == endings.COMPLETE
    return ranges.tolist()


Rows = list[tuple[int, bool, int | None, list[tuple[int, int]]]]


def around_of(found: Dwarf, index: int, addresses: list[int]) -> Rows:
    """Offset, whether it is no inlined call, the function around, and ranges, of each DIE."""
    dies, ranges, ending = native.functions_around(
        found.with_dies(index), found.units, index, found.abbreviations, u64(*addresses), 1 << 20
    )
    assert ending == endings.COMPLETE
    own: dict[int, list[tuple[int, int]]] = {}
    for low, high, row in ranges.tolist():
        own.setdefault(row, []).append((low, high))
    offsets = dies["offset"].tolist()
    return [
        (offset, bool(is_subprogram), offsets[parent] if parent >= 0 else None, own.get(row, []))
        for row, (offset, parent, is_subprogram) in enumerate(dies.tolist())
    ]


Expected = list[tuple[Any, Any, list[tuple[int, int]]]]


def wanted(expected: Expected, addresses: set[int]) -> Rows:
    """What is to be read: outermost functions with code, whole, of those that hold an address."""
    by_offset = {die.offset: (die, around, ranges) for die, around, ranges in expected}

    def outermost(die: Any) -> int | None:
        """The outermost function around a DIE that has ranges, of those around it or itself."""
        found = None
        while die is not None:
            _, around, ranges = by_offset[die.offset]
            found = die.offset if ranges else found
            die = around
        return found

    ordered = sorted(addresses)

    def holds(ranges: list[tuple[int, int]]) -> bool:
        return any(bisect_left(ordered, low) < bisect_left(ordered, high) for low, high in ranges)

    kept = {outermost(die) for die, _, ranges in expected if holds(ranges)}
    rows = {
        die.offset
        for die, _, ranges in expected
        if outermost(die) in kept - {None} and (ranges or die.has_children)
    }
    for offset in [*rows]:  # functions without code that are around them
        around = by_offset[offset][1]
        while around is not None:
            rows.add(around.offset)
            around = by_offset[around.offset][1]
    return [
        (die.offset, die.tag == SUBPROGRAM, around.offset if around else None, ranges)
        for die, around, ranges in expected
        if die.offset in rows
    ]


def functions(of: Any) -> Iterator[tuple[Any, Any]]:
    """Function DIEs of a unit, each with the one around it."""
    for die in of.iter_DIEs():
        if die.tag in (SUBPROGRAM, INLINED):
            around = die.get_parent()
            while around is not None and around.tag not in (SUBPROGRAM, INLINED):
                around = around.get_parent()
            yield die, around


def ranges_of(die: Any, read: Any) -> Iterator[tuple[int, int]]:
    """Address ranges as pyelftools decodes them."""
    attributes = die.attributes
    if "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in attributes:
        base = die.cu.get_top_DIE().attributes["DW_AT_low_pc"].value
        lists = read.range_lists()
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, die.cu):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                yield start + entry.begin_offset, start + entry.end_offset


# One unit by hand, and what may be wrong with it.

TABLE = (
    abbreviation(1, "compile_unit", children=True)
    + abbreviation(2, "subprogram", ("low_pc", "addr"), ("high_pc", "data1"))
    + abbreviation(3, "subprogram", ("low_pc", "addr"), ("high_pc", "data1"), children=True)
    + abbreviation(4, "inlined_subroutine", ("low_pc", "addr"), ("high_pc", "data1"))
    + abbreviation(5, "inlined_subroutine", children=True)
    + abbreviation(6, "lexical_block", ("low_pc", "addr"), children=True)
    + abbreviation(7, "subprogram", ("decl_line", "data1"))
    + abbreviation(8, "subprogram", ("decl_line", "indirect"))
    + abbreviation(9, "subprogram", children=True)
    + b"\0"
)
ROOT, END, DECLARED = b"\x01", b"\0", b"\x07\x2a"
UNRANGED, UNRANGED_INLINED = b"\x09", b"\x05"
BLOCK = b"\x06" + words(0x1000)
FIRST = 12
"""Where the first DIE behind the root stands."""


def function(low: int, size: int = 16, *children: bytes) -> bytes:
    code = b"\x03" if children else b"\x02"
    return code + words(low) + bytes([size]) + b"".join(children) + (END if children else b"")


def inlined(low: int, size: int = 4) -> bytes:
    return b"\x04" + words(low) + bytes([size])


def by_hand(dies: bytes) -> Dwarf:
    found = dwarf(info=unit(ROOT + dies), abbrev=TABLE)
    found.load([0])
    return found


def subprograms(found: Dwarf, limit: int = 99) -> tuple[np.ndarray, int]:
    return native.subprogram_ranges(found.with_dies(0), found.units, 0, found.abbreviations, limit)


def owners(dies: bytes, *addresses: int, limit: int = 100) -> tuple[list[int | None], int]:
    """Offset of the innermost function around each address, and how reading ended."""
    found = by_hand(dies)
    rows, ranges, ending = native.functions_around(
        found.with_dies(0), found.units, 0, found.abbreviations, u64(*addresses), limit
    )
    bounds = np.unique(np.concatenate([ranges["low"], ranges["high"]]))
    leaves = native.innermost(ranges, bounds, u64(*addresses))
    return [int(rows["offset"][leaf]) if leaf >= 0 else None for leaf in leaves], ending


def test_an_address_is_in_the_innermost_function_around_it() -> None:
    dies = DECLARED + function(16, 16, BLOCK, inlined(20), END) + function(64) + END
    around = FIRST + len(DECLARED)
    inner = around + 10 + len(BLOCK)
    last = around + len(function(16, 16, BLOCK, inlined(20), END))
    asked = (15, 16, 20, 23, 24, 31, 32, 64)
    expected = [None, around, inner, inner, around, around, None, last]
    assert owners(dies, *asked) == (expected, endings.COMPLETE)


def test_functions_that_hold_no_address_are_left_out_with_all_that_is_in_them() -> None:
    dies = function(16, 16, inlined(20)) + function(64) + function(96, 16, inlined(100)) + END
    found = by_hand(dies)
    rows, ranges, _ = native.functions_around(
        found.with_dies(0), found.units, 0, found.abbreviations, u64(64), 100
    )
    assert ranges.tolist() == [(64, 80, 0)]
    assert len(rows) == 1


def test_an_inlined_call_may_lie_outside_of_its_function() -> None:
    dies = function(16, 16, inlined(512)) + END
    assert owners(dies, 512)[0] == [FIRST + 10]
    assert owners(dies, 512, 513)[0] == [FIRST + 10] * 2


@pytest.mark.parametrize("around", [UNRANGED, UNRANGED_INLINED])
def test_functions_without_code_count_as_parents_of_those_that_have_some(around: bytes) -> None:
    found = by_hand(around + function(16) + inlined(64) + END + around + function(96) + END + END)
    rows, ranges, _ = native.functions_around(
        found.with_dies(0), found.units, 0, found.abbreviations, u64(64), 100
    )
    assert rows["offset"].tolist() == [FIRST, FIRST + 11]
    assert rows["parent"].tolist() == [-1, 0]
    assert ranges.tolist() == [(64, 68, 1)]


@pytest.mark.parametrize(
    ("rest", "ending"),
    [
        (function(64)[:8], endings.DAMAGED),
        (b"\x80", endings.DAMAGED),
        (b"\x0a", endings.NO_DECLARATION),
        (b"\x08\x02abc", endings.ODD_FORM),
    ],
)
def test_what_stands_before_damage_is_kept(rest: bytes, ending: int) -> None:
    assert owners(function(16) + rest, 16) == ([FIRST], ending)
    found = by_hand(function(16) + rest)
    ranges, same = subprograms(found)
    assert (ranges.tolist(), same) == ([(16, 32, FIRST)], ending)


def test_reading_ends_with_the_tree_of_the_root() -> None:
    """Which is told where the unit goes on."""
    damaged = function(16) + END + function(64)
    assert owners(damaged, 16, 64) == ([FIRST, None], endings.DAMAGED)
    assert subprograms(by_hand(damaged))[1] == endings.DAMAGED
    # Without the null entry at the end, and with more than one.
    assert owners(function(16), 16) == ([FIRST], endings.COMPLETE)
    assert owners(END + END, 16) == ([None], endings.COMPLETE)


def test_ranges_that_never_end_are_cut() -> None:
    dies = function(16) * 9 + END
    assert owners(dies, 16, limit=4)[1] == endings.TOO_MANY_RANGES
    assert owners(dies, 64, limit=4)[1] == endings.TOO_MANY_RANGES  # though all are dropped
    found = by_hand(dies)
    assert subprograms(found, 4)[1] == endings.TOO_MANY_RANGES


def test_a_unit_is_not_read_before_its_abbreviations_are() -> None:
    found = dwarf(info=unit(ROOT), abbrev=TABLE)
    with pytest.raises(ValueError, match="not loaded"):
        native.subprogram_ranges(found.with_dies(0), found.units, 0, found.abbreviations, 99)


# The map from addresses to functions.

Ranges = list[tuple[int, int]]


def insert_one_by_one(ranges: Ranges) -> dict[int, tuple[int, int]]:
    """(end, owner) by start: a sorted map into which each range is put, splitting the one below."""
    found: dict[int, tuple[int, int]] = {}
    for owner, (low, high) in enumerate(ranges):
        if low == high:
            continue
        starts = sorted(found)
        at = bisect_right(starts, low) - 1
        if at >= 0 and low < found[starts[at]][0]:
            below = starts[at]
            end, outer = found[below]
            if high < end:
                found[high] = (end, outer)
            found[below] = (low, outer)
        found[low] = (high, owner)
    return found


def looked_up(ranges: Ranges, addresses: list[int]) -> list[int]:
    found = insert_one_by_one(ranges)
    starts = sorted(found)
    result = []
    for address in addresses:
        at = bisect_right(starts, address) - 1
        end, owner = found[starts[at]] if at >= 0 else (0, -1)
        result.append(owner if address < end else -1)
    return result


def innermost(ranges: Ranges, addresses: list[int]) -> list[int]:
    rows = np.array([(low, high, i) for i, (low, high) in enumerate(ranges)], RANGE)
    bounds = u64(*sorted({bound for pair in ranges for bound in pair}))
    return native.innermost(rows, bounds, u64(*addresses)).tolist()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=25))
def test_any_ranges_give_the_owners_that_inserting_them_gives(ranges: Ranges) -> None:
    addresses = [*range(42), 42, 42]
    assert innermost(ranges, addresses) == looked_up(ranges, addresses)


@st.composite
def nested(draw: st.DrawFn) -> Ranges:
    """Ranges that nest, outer ones first."""
    ranges: Ranges = []

    def split(low: int, high: int, depth: int) -> None:
        ranges.append((low, high))
        at = low
        for _ in range(draw(st.integers(0, 3)) if depth < 4 else 0):
            start = draw(st.integers(at, high))
            at = draw(st.integers(start, high))
            if start < at:
                split(start, at, depth + 1)

    split(0, 100, 0)
    return ranges


@given(nested())
def test_of_nested_ranges_the_innermost_wins(ranges: Ranges) -> None:
    addresses = [*range(100)]
    assert innermost(ranges, addresses) == [
        max(i for i, (low, high) in enumerate(ranges) if low <= address < high)
        for address in addresses
    ]


# Descriptions.

DESCRIBED = (
    abbreviation(1, "compile_unit", children=True)
    + abbreviation(2, "subprogram", ("name", "string"), ("decl_line", "data1"))
    + abbreviation(3, "subprogram", ("specification", "ref4"), ("linkage_name", "string"))
    + abbreviation(4, "inlined_subroutine", ("abstract_origin", "ref_addr"), ("call_line", "data1"))
    + abbreviation(5, "subprogram", ("abstract_origin", "GNU_ref_alt"))
    + b"\0"
)


def described(info: bytes, *offsets: int, unit: int = 0) -> tuple[np.ndarray, Dwarf]:
    found = dwarf(info=info, abbrev=DESCRIBED)
    found.load([unit])
    rows = native.describe(
        found.with_dies(unit), found.units, unit, found.abbreviations, np.array(offsets, np.int64)
    )
    return rows, found


def test_a_description_is_gathered_on_the_way_to_origin_and_specification() -> None:
    plain, linked = b"\x02f\0\x2a", b"\x03" + words(FIRST, size=4) + b"_Zf\0"
    call = b"\x04" + words(FIRST + len(plain), size=4) + b"\x09"
    rows, found = described(
        unit(b"\x01" + plain + linked + call + b"\0"), FIRST + len(plain + linked)
    )
    row = rows[0]
    assert (row["decl_line"], row["call_line"], row["moved"], row["elsewhere"]) == (42, 9, -1, -1)
    assert found.text(row["name"]) == "f"
    assert found.text(row["linkage_name"]) == "_Zf"


def test_a_way_that_leaves_the_unit_is_told() -> None:
    first = unit(b"\x01\x02f\0\x2a\0")
    info = first + unit(b"\x01\x04" + words(FIRST, size=4) + b"\x09\0")
    rows, _ = described(info, len(first) + FIRST, unit=1)
    assert rows[["decl_line", "call_line", "elsewhere"]].tolist() == [(0, 9, FIRST)]


def test_what_is_in_the_supplementary_file_is_said_to_be_there() -> None:
    rows, _ = described(unit(b"\x01\x05" + words(77, size=4) + b"\0"), FIRST)
    assert rows["moved"].tolist() == [77]


def test_of_what_is_no_die_nothing_is_said() -> None:
    info = unit(b"\x01\x02f\0\x2a\0")
    for nowhere in (len(info) - 1, FIRST + 2):
        assert described(info, nowhere)[0].tolist() == [native.UNDESCRIBED.tolist()]


def test_ways_without_end_are_left() -> None:
    count = 100
    chain = b"".join(b"\x03" + words(FIRST + (i + 1) * 6, size=4) + b"\0" for i in range(count))
    info = unit(b"\x01" + chain + b"\x02f\0\x2a\0")
    far, near = described(info, FIRST, FIRST + 6 * (count - 9))[0]["decl_line"].tolist()
    assert (far, near) == (0, 42)
