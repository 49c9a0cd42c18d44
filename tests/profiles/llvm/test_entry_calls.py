from __future__ import annotations

import numpy as np
import pytest
from builders.compat import llvm_profgen_if
from builders.elf import Function
from builders.flows import flow_of
from builders.symbols import Row, symbol_table

from lbr2pgo.profiles.llvm.entry_calls import EXTERNAL, calls_to_entries, entries_at
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions
from lbr2pgo.support.addresses import image_array


def described(*ranges: tuple[int, int, str]) -> DwarfFunctions:
    """What debug information says: start, end and name of the function of each range."""
    names = tuple(dict.fromkeys(name for _, _, name in ranges))
    numbers = np.array([names.index(name) for _, _, name in ranges], np.int32)
    starts, ends = (image_array(row[i] for row in ranges) for i in (0, 1))
    return DwarfFunctions(starts, ends, numbers, names)


def entered(functions: DwarfFunctions, *rows: Row, odd: bool = False) -> dict[int, str]:
    """Which function each start of a range enters."""
    is_odd = np.full(len(functions.names), odd)
    found, names = entries_at(functions.range_start, symbol_table(*rows), functions, is_odd)
    starts = functions.range_start.tolist()
    return {a: names[i] for a, i in zip(starts, found.tolist(), strict=True) if i >= 0}


SPLIT = described((0x10, 0x20, "f"), (0x40, 0x50, "f"))


def test_the_only_range_of_a_function_is_entered_if_a_symbol_stands_in_it() -> None:
    functions = described((0x10, 0x20, "f"), (0x20, 0x30, "g"))
    assert entered(functions, Row("other", 0x14)) == {0x10: "f"}


def test_of_several_ranges_the_one_with_the_functions_symbol_is_entered() -> None:
    assert entered(SPLIT, Row("f", 0x40), Row("f.cold", 0x10, local=True)) == {0x40: "f"}
    assert entered(SPLIT, Row("f.cold", 0x10)) == {}


def test_any_symbol_does_where_the_name_is_not_sure() -> None:
    assert entered(SPLIT, Row("x", 0x10), Row("y", 0x40), odd=True) == {0x10: "f", 0x40: "f"}


def test_names_are_those_that_llvm_gives_profiles() -> None:
    functions = described((0x10, 0x20, "f.llvm.123"))
    assert entered(functions, Row("f.llvm.123", 0x10)) == {0x10: "f"}


def test_inside_a_function_and_outside_of_all_nothing_is_entered() -> None:
    functions = described((0x10, 0x20, "f"))
    places = image_array([0x0F, 0x11, 0x20])
    assert entries_at(places, symbol_table(Row("f", 0x10)), functions)[0].tolist() == [-1] * 3


@pytest.mark.parametrize("as_llvm", [False, True])
def test_a_branch_from_outside_is_a_call_of_nobody_and_of_llvms_address(
    as_llvm: bool, tmp_path
) -> None:
    base = 0x1000
    code = bytes.fromhex("e8fbffffff c3")  # f calls itself
    flow, program = flow_of(
        tmp_path, code, base, [(0, 0, None, 7), (None, 0, None, 5)], [Function("f", base, 6)]
    )
    functions = described((base, base + 6, "f"))
    calls = calls_to_entries(flow, program.symbols, functions, compat=llvm_profgen_if(as_llvm))
    rows = zip(
        calls.source.tolist(), calls.has_source.tolist(), calls.count.tolist(), strict=True
    )  # fmt: skip
    assert sorted(rows) == [(int(EXTERNAL), as_llvm, 5), (base, True, 7)]
    assert [calls.names[i] for i in calls.callee.tolist()] == ["f", "f"]
