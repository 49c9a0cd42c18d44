"""Calls through what was loaded, in code of each kind of processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.program.code.loaded_calls import calls_through
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import placed_array

X86 = {
    "folded: call *(%rax)": "0",
    "folded: jmp *8(%rax)": "0",
    "call: mov (%rax), %rcx; mov %ebx, %esi; call *%rcx": "2",
    "jump: mov (%rax), %rax; jmp *%rax": "1",
    "behind a call: mov (%rax), %rbx; call f; call *%rbx": "2",
    "behind another one: mov (%rax), %rbx; mov (%rdx), %r12; call *%r12; call *%rbx": "3",
    "overwritten: mov (%rax), %rcx; mov 8(%rcx), %rcx; call *%rcx": "-",
    "another one's: mov -8(%rax), %rdi; mov (%rbx), %rcx; call *%rcx": "-",
    "branch: mov (%rax), %rcx; test %rcx, %rcx; je f; call *%rcx": "-",
    "no register: cmp (%rax), %rcx; call *%rcx": "-",
    "not a load of the target: mov (%rax), %rcx; call *(%rdx)": "-",
    "end: mov (%rax), %rcx": "-",
}
AARCH64 = {
    "call: ldr x8, [x8]; mov w1, w19; blr x8": "2",
    "two: ldr x9, [x9]; ldr x8, [x8]; blr x8; blr x9": "3",
    "jump: ldr x2, [x8, #8]; br x2": "1",
    "branch: ldr x8, [x8]; cbz x8, f; blr x8": "-",
    "overwritten: ldr x8, [x8]; ldr x8, [x8, #8]; blr x8": "-",
}
RISCV64 = {
    "call: ld a5, 0(a5); mv a1, s1; jalr a5": "2",
    "jump: ld t1, 8(a5); jr t1": "1",
    "branch: ld a5, 0(a5); beqz a5, f; jalr a5": "-",
    "overwritten: ld a5, 0(a5); ld a5, 8(a5); jalr a5": "-",
}
FUNCTION = "    .globl {0}\n    .type {0}, %function\n{0}:\n{1}\n    .size {0}, . - {0}\n"


@pytest.mark.parametrize(
    ("machine", "cases"), [("x86-64", X86), ("aarch64", AARCH64), ("riscv64", RISCV64)]
)
def test_the_call_is_the_one_that_takes_what_was_loaded(
    machine: str, cases: dict[str, str], link: Callable[..., Path]
) -> None:
    """By the number of the instruction in the code."""
    functions = [("f", "ret"), ("_start", "ret")]
    functions += [
        (f"f{i}", "\n".join(case.split(": ")[1].split("; "))) for i, case in enumerate(cases)
    ]
    code = "".join(FUNCTION.format(*each) for each in functions)
    program = Program.open(link(code, machine=machine))
    starts = [program.address_of(f"f{i}") for i in range(len(cases))]
    assert None not in starts
    loads = placed_array([start for start in starts if start is not None])
    table, calls = program.instructions_for(loads), calls_through(program, loads)
    found = [
        str(row - begin) if row >= 0 else "-"
        for begin, row in zip(
            *(table.index_of(each).tolist() for each in (loads, calls)), strict=True
        )
    ]
    assert dict(zip(cases, found, strict=True)) == cases


def test_what_is_no_instruction_loads_nothing(link: Callable[..., Path]) -> None:
    program = Program.open(link(FUNCTION.format("_start", "call *(%rax)")))
    start = program.address_of("_start")
    assert start is not None
    assert calls_through(program, placed_array([start, start + 1, 5])).tolist() == [start, 0, 0]
