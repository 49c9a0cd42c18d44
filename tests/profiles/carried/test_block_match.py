"""Blocks of two forms of a function."""

from __future__ import annotations

import pytest
from builders.bolt import Assemble, function

from lbr2pgo.profiles.carried.block_match import block_match
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.blocks.function_code import FunctionCode, ProgramCode
from lbr2pgo.program.program import Program

OTHERS = function("f", "ret") + function("g", "ret")
LONG = "mov %rax, {0}(%rdi)\nadd $7, %rax\nxor %rcx, %rax\nshl $3, %rax\nimul %rdx, %rax\n"
LONG += "sub %rsi, %rax\nor $1, %rax\nnot %rax\nneg %rax\n"


def read(program: Program) -> FunctionCode:
    functions = discover(program.image, program.symbols)
    number = functions.names.index("_start")
    return ProgramCode(program, functions, [number]).function(number)


@pytest.fixture
def match(assemble: Assemble):
    def match(old: str, new: str) -> dict[int, int]:
        before, after = (read(assemble(function("_start", body) + OTHERS)) for body in (old, new))
        return dict(block_match(before, after))

    return match


def test_blocks_of_the_same_code_are_themselves(match) -> None:
    body = "je 1f\ninc %eax\n1: cmp %eax, %ebx\njne 2f\ncall f\n2: ret"
    assert match(body, body) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}


def test_a_block_in_between_moves_those_behind(match) -> None:
    old = f"je 1f\n{LONG.format(8)}1: cmp %eax, %ebx\njne 2f\ncall f\n2: ret"
    new = old.replace("je 1f\n", "je 1f\ncmp $9, %ecx\nja 1f\n")
    assert match(old, new) == {0: 0, 1: 2, 2: 3, 3: 4, 4: 5}


def test_blocks_may_be_laid_out_in_another_order(match) -> None:
    old = f"je 1f\n{LONG.format(8)}ret\n1: {LONG.format(80)}call g\nret"
    new = f"jne 1f\n{LONG.format(80)}call g\nret\n1: {LONG.format(8)}ret"
    assert match(old, new) == {0: 0, 1: 2, 2: 1}


def test_other_registers_are_told_by_the_flow(match) -> None:
    old = "test %eax, %eax\nje 1f\nmov %eax, %edi\ncall f\nmov %ecx, %edi\n1: ret"
    new = "test %ebx, %ebx\nje 1f\nmov %ebx, %edi\ncall f\nmov %edx, %edi\n1: ret"
    assert match(old, new) == {0: 0, 1: 1, 2: 2}


def test_callees_tell_blocks_apart(match) -> None:
    old = "je 1f\nmov %eax, %edi\ncall f\nret\n1: mov %eax, %edi\ncall g\nret"
    new = "je 1f\nmov %ecx, %edi\ncall g\nret\n1: mov %ecx, %edi\ncall f\nret"
    assert match(old, new) == {0: 0, 1: 2, 2: 1}


def test_blocks_without_anything_in_common_are_none(match) -> None:
    assert match("je 1f\nret\n1: inc %eax\nnot %eax\nret", "hlt") == {0: 0}


TABLE = 'jmp *.Ltable(,%rax,8)\n{0}\n.section .data.rel.ro,"aw"\n.Ltable: .quad {1}\n.text\n'


def test_entries_of_tables_tell_of_cases_that_are_alike(match) -> None:
    cases = "\n".join(f".L{i}: mov %e{r}x, %esi\nret" for i, r in enumerate("abcd"))
    other = "\n".join(f".L{i}: mov %e{r}x, %esi\nret" for i, r in enumerate("badc"))
    names = ", ".join(f".L{i}" for i in range(4))
    mixed = ", ".join(f".L{i}" for i in (1, 0, 3, 2))
    old, new = TABLE.format(cases, names), TABLE.format(other, mixed)
    assert match(old, new) == {0: 0, 1: 2, 2: 1, 3: 4, 4: 3}


def test_a_new_entry_shifts_the_others(match) -> None:
    words = ("inc", "dec", "not", "neg", "push", "pop", "bswap")
    bodies = [f"{word} %rax\n" * (i + 1) + "ret" for i, word in enumerate(words)]
    old = "\n".join(f".L{i}: {bodies[i]}" for i in range(6))
    new = "\n".join(f".L{i}: {bodies[i]}" for i in (6, 0, 1, 2, 3, 4, 5))
    tables = [", ".join(f".L{i}" for i in order) for order in (range(6), (0, 1, 6, 2, 3, 4, 5))]
    found = match(TABLE.format(old, tables[0]), TABLE.format(new, tables[1]))
    assert found == {0: 0, **{i + 1: i + 2 for i in range(6)}}
