"""Jump tables, on code small enough to be read."""

from __future__ import annotations

import pytest
from builders.bolt import Assemble, code_of, function

from lbr2pgo.program.blocks.jump_tables import find_jump_tables
from lbr2pgo.program.blocks.references import read_references
from lbr2pgo.program.blocks.x86_idioms import X86_64
from lbr2pgo.program.program import Program

DISTANCES = """
lea .Ltable(%rip), %rcx
movslq (%rcx,%rax,4), %rdx
add %rcx, %rdx
jmp *%rdx
1: nop
2: ret
"""
TABLE = '.section .rodata,"a"\n.p2align 2\n.Ltable: .long 1b-.Ltable, 2b-.Ltable, 1b-.Ltable\n'


def targets(program: Program) -> list[int]:
    code, image = code_of(program, "_start"), program.image
    tables = find_jump_tables(image, code, read_references(image), X86_64)
    return sorted({int(t - code.functions.start[0]) for t in tables.target})


@pytest.mark.parametrize("flags", [(), ("-q",), ("-pie",), ("-pie", "-q")])
def test_a_table_of_distances(assemble: Assemble, flags: tuple[str, ...]) -> None:
    assert targets(assemble(function("_start", DISTANCES) + TABLE, *flags)) == [16, 17]


def test_the_registers_may_change_roles(assemble: Assemble) -> None:
    body = DISTANCES.replace("add %rcx, %rdx\njmp *%rdx", "add %rdx, %rcx\njmp *%rcx")
    assert targets(assemble(function("_start", body) + TABLE)) == [16, 17]


def test_what_comes_between_does_no_harm(assemble: Assemble) -> None:
    body = DISTANCES.replace("add", "mov %rax, %rsi\npush %rbx\nadd")
    assert targets(assemble(function("_start", body) + TABLE)) == [20, 21]


@pytest.mark.parametrize("spoiler", ["mov %rax, %rdx", "xor %edx, %edx", "pop %rdx"])
def test_a_register_set_in_another_way_hides_the_table(assemble: Assemble, spoiler: str) -> None:
    body = DISTANCES.replace("add", f"{spoiler}\nadd")
    assert targets(assemble(function("_start", body) + TABLE)) == []


def test_unless_relocations_tell(assemble: Assemble) -> None:
    body = DISTANCES.replace("add", "mov %rax, %rdx\nadd")
    assert targets(assemble(function("_start", body) + TABLE, "-q")) == [19, 20]


def test_a_table_ends_before_an_entry_that_makes_no_sense(assemble: Assemble) -> None:
    longer = TABLE + ".long 5, 2b-.Ltable+1\n"
    assert targets(assemble(function("_start", DISTANCES) + longer)) == [16, 17]


def test_one_target_is_no_table(assemble: Assemble) -> None:
    short = '.section .rodata,"a"\n.Ltable: .long 1b-.Ltable, 7\n'
    assert targets(assemble(function("_start", DISTANCES) + short)) == []


@pytest.mark.parametrize("jump", ["jmp *.Ltable(,%rax,8)", "mov .Ltable(,%rax,8), %rcx\njmp *%rcx"])
def test_a_table_of_addresses(assemble: Assemble, jump: str) -> None:
    table = '.section .rodata,"a"\n.p2align 3\n.Ltable: .quad 1b, 2b\n'
    program = assemble(function("_start", f"{jump}\n1: nop\n2: ret") + table)
    length = 7 if jump.startswith("jmp") else 10
    assert targets(program) == [length, length + 1]
