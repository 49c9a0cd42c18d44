from __future__ import annotations

import time

import pytest
from builders.elf import Function
from builders.evidence import program as toy
from builders.recordings import STATIC, TESTBINS

from lbr2pgo.program.code.named_functions import find_function, near_matches
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(STATIC)


def test_a_function_by_name_and_by_any_address_in_it(program: Program) -> None:
    row = find_function(program, "main")
    start, end = int(program.regions.start[row]), int(program.regions.end[row])
    for address in (start, start + 5, end - 1):
        assert find_function(program, hex(address)) == row
    assert find_function(program, hex(end)) != row


def test_an_address_in_code_that_no_symbol_names(program: Program) -> None:
    gap = next(i for i, name in enumerate(program.regions.name) if not name)
    assert find_function(program, hex(int(program.regions.start[gap]))) == gap


@pytest.mark.parametrize("wanted", ["mian", "", "0x0", "0xzz", "0x-5", "0x" + "f" * 40, "nope\n"])
def test_what_is_not_there(program: Program, wanted: str) -> None:
    with pytest.raises(InputError, match="no function is called"):
        find_function(program, wanted)


def test_names_that_hold_the_text_come_first_then_those_that_look_like_it() -> None:
    names = ["_ZN5shape4areaEv", "arena", "AREA51", "unrelated", "aera"]
    assert near_matches("area", names) == ["AREA51", "_ZN5shape4areaEv", "arena", "aera"]
    assert near_matches("zzz", names) == []
    assert len(near_matches("f", [f"f{i}" for i in range(100)])) == 5


def test_a_million_names_are_compared_in_no_time() -> None:
    names = [f"_ZN4name{i:06x}Ev" for i in range(300_000)]
    start = time.process_time()
    assert near_matches("_ZN4name00000gEv", names)
    assert time.process_time() - start < 10


@pytest.fixture(scope="module")
def shapes() -> Program:
    return Program.open(TESTBINS / "x86-64" / "shapes.pie")


@pytest.mark.parametrize(
    "name",
    ["(anonymous namespace)::sum_digits", "(anonymous namespace)::sum_digits(unsigned int, int)"],
)
def test_a_function_by_its_name_in_cpp(shapes: Program, name: str) -> None:
    assert find_function(shapes, name) == find_function(shapes, "_ZN12_GLOBAL__N_110sum_digitsEji")


def test_a_cpp_name_of_several_functions() -> None:
    """A class with a virtual destructor has one that deletes, and one that does not."""
    names = ("_ZN4ItemD0Ev", "_ZN4ItemD2Ev")
    functions = [Function(name, 0x1000 + 16 * i, 16) for i, name in enumerate(names)]
    with pytest.raises(
        InputError, match=f"2 functions are called Item::~Item.*\n.*{', '.join(names)}"
    ):
        find_function(toy(functions), "Item::~Item")


def test_a_fragment_is_its_function() -> None:
    functions = [Function("_Z3foov", 0x1000, 16), Function("_Z3foov.cold", 0x1020, 16)]
    assert find_function(toy(functions), "foo") == 0


def test_near_matches_show_names_in_cpp_too(shapes: Program) -> None:
    with pytest.raises(
        InputError, match=r"\(anonymous namespace\)::sum_digits\(unsigned int, int\)"
    ):
        find_function(shapes, "sum_digits")
