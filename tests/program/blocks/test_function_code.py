"""What functions do, in words."""

from __future__ import annotations

import numpy as np
import pytest
from builders.bolt import Assemble, function
from builders.recordings import PIE

from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.blocks.function_code import FunctionCode, ProgramCode, plain_name
from lbr2pgo.program.program import Program


def code(program: Program, name: str = "_start") -> FunctionCode:
    functions = discover(program.image, program.symbols)
    number = functions.names.index(name)
    return ProgramCode(program, functions, [number]).function(number)


def shape(program: Program, name: str = "_start") -> tuple[object, ...]:
    functions = discover(program.image, program.symbols)
    number = functions.names.index(name)
    return ProgramCode(program, functions, [number]).shape(number)


@pytest.mark.parametrize(
    ("said", "plain"),
    [("f", "f"), ("f/1", "f"), ("f/a.c/2", "f"), ("f.cold/1", "f.cold"), ("f.__uniq.1/3", "f")],
)
def test_names_lose_what_tells_them_apart(said: str, plain: str) -> None:
    assert plain_name(said) == plain


def test_words_have_no_addresses_and_no_padding(assemble: Assemble) -> None:
    one, other = (
        code(assemble(function("_start", f"{pad}lea 1f(%rip), %rax\nmov $0x{big}, %edi\n1: ret")))
        for pad, big in (("", "400000"), ("nop\nnopw 0(%rax)\n", "500000"))
    )
    assert one.blocks[0].words == other.blocks[0].words != ()
    assert one.blocks[0].likeness(other.blocks[0]) == 1.0


def test_registers_are_in_the_words_but_not_in_the_loose_ones(assemble: Assemble) -> None:
    one, other = (
        code(assemble(function("_start", f"mov %{register}, %rsi\nret"))).blocks[0]
        for register in ("rax", "rbx")
    )
    assert one.words != other.words
    assert one.loose == other.loose
    assert one.likeness(other) == 1.0


def test_likeness_is_the_share_of_instructions_and_callees_in_common(assemble: Assemble) -> None:
    rest = function("f", "ret") + function("g", "ret")
    first = code(assemble(function("_start", "mov %eax, %edi\ncall f\nret") + rest)).blocks[0]
    again = code(assemble(function("_start", "mov %ebx, %edi\ncall g\nret") + rest)).blocks[0]
    # mov, call and ret in both; `call f` and `call g` in one each.
    assert first.likeness(again) == 6 / 8
    assert [(call.offset, call.callee) for call in first.calls] == [(2, "f")]


def test_blocks_tell_where_control_goes(assemble: Assemble) -> None:
    found = code(assemble(function("_start", "je 1f\nnop\njmp 2f\n1: inc %eax\n2: ret")))
    assert [block.successors for block in found.blocks] == [(1, 2), (3,), (3,), ()]
    assert [block.jumps for block in found.blocks] == [{2: 0}, {3: 3}, {}, {}]
    assert found.predecessors == ((), (0,), (0,), (1, 2))
    offsets = [found.block_at(offset) for offset in (0, 2, 3, 5, 7, 8)]
    assert offsets == [0, 1, 1, 2, 3, -1]


def test_jumps_to_other_functions_are_calls(assemble: Assemble) -> None:
    found = code(
        assemble(function("_start", "test %eax, %eax\njne f\njmp f") + function("f", "ret"))
    )
    assert [[call.callee for call in block.calls] for block in found.blocks] == [["f"], ["f"]]


def test_labels_that_data_holds_are_in_its_order(assemble: Assemble) -> None:
    source = function("_start", "jmp *table(,%rax,8)\n1: inc %eax\nret\n2: dec %eax\nret\n")
    source += '.section .data.rel.ro,"aw"\ntable: .quad 2b, 1b, 2b\n'
    source = source.replace("2b", ".Ltwo").replace("1b", ".Lone")
    source = source.replace("1: inc", ".Lone: inc").replace("2: dec", ".Ltwo: dec")
    found = code(assemble(source))
    assert set(found.tables) == {(2, 1, 2)}
    assert found.blocks[0].successors == (1, 2)
    assert found.blocks[0].is_indirect


def test_a_switch_has_its_cases_in_order() -> None:
    program = Program.open(PIE)
    found = code(program, "run/1")
    (table,) = found.tables
    dispatch = next(block for block in found.blocks if block.is_indirect)
    assert set(table) == set(dispatch.successors)
    assert len(table) == 15


def test_the_shape_is_the_flow_and_the_callees(assemble: Assemble) -> None:
    rest = function("f", "ret") + function("g", "ret")
    plain = function("_start", "je 1f\nmov $1, %eax\ncall f\n1: ret") + rest
    same = shape(assemble(plain))
    assert shape(assemble(plain.replace("$1", "$2"))) == same
    assert shape(assemble("nop\n" * 40 + plain)) == same
    for before, after in (
        ("call f", "call g"),
        ("je 1f", "jne 1f\nnop"),
        ("1: ret", "1: nop\nret"),
    ):
        assert shape(assemble(plain.replace(before, after))) != same


def test_all_of_a_program_is_told() -> None:
    program = Program.open(PIE)
    functions = discover(program.image, program.symbols)
    own = np.flatnonzero(~functions.is_pseudo).tolist()
    told = ProgramCode(program, functions, own)
    for number in own:
        blocks = told.function(number).blocks
        assert [block.first for block in blocks] == sorted(block.first for block in blocks)
        assert all(0 <= to < len(blocks) for block in blocks for to in block.successors)
        assert all(set(block.jumps) <= set(block.successors) for block in blocks)
