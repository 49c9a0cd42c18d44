from __future__ import annotations

import numpy as np
import pytest
from builders.bolt import Assemble, blocks_of, code_of, function

from lbr2pgo.program.blocks.x86_idioms import jump_tables, rip_relative_leas, uses_short_loop


def test_a_lock_prefix_is_an_instruction(assemble: Assemble) -> None:
    program = assemble(
        function("_start", "je 1f\nlock\n1: incl (%rax)\nlock incl (%rax)\n2: jmp 2b")
    )
    assert blocks_of(program) == [(0, 0, True), (2, 2, True), (3, 6, True), (8, 8, False)]


@pytest.mark.parametrize(
    "jump", ["jmp *(%rax)", "jmp *.Ltable(%rip)", "jmp *.Ltable(,%rax,4)", "jmp *%r11"]
)
def test_other_indirect_jumps_use_none(assemble: Assemble, jump: str) -> None:
    table = '.section .rodata,"a"\n.p2align 3\n.Ltable: .quad 1b, 2b\n'
    program = assemble(function("_start", f"{jump}\n1: nop\n2: ret") + table)
    assert len(jump_tables(code_of(program, "_start")).table) == 0


def test_leas(assemble: Assemble) -> None:
    program = assemble(
        function("_start", "lea 1f(%rip), %rax\nlea 1f(%rip), %r15\nlea 1f(%rip), %eax\n1: ret")
    )
    code = code_of(program, "_start")
    rows, taken = rip_relative_leas(code)
    assert rows.tolist() == [0, 1]
    assert (taken - code.functions.start[0]).tolist() == [20, 20]


@pytest.mark.parametrize("short", ["loop", "loope", "loopne", "jrcxz", "jecxz"])
def test_branches_that_lead_no_further_than_a_byte_says_are_not_moved(
    assemble: Assemble, short: str
) -> None:
    code = code_of(assemble(function("_start", f"1: je 1b\njmp 1b\n{short} 1b\nret")), "_start")
    assert np.flatnonzero(uses_short_loop(code)).tolist() == [2]
