"""What is compared, in code that can be read; tests/analyses/test_cases.py has compilers'."""

from __future__ import annotations

import pytest
from builders.bolt import Assemble, code_of, function

from lbr2pgo.program.blocks.idioms import Switch
from lbr2pgo.program.blocks.x86_switches import condition, switch_of
from lbr2pgo.program.code.instructions import Kind

TABLE = '.section .rodata,"a"\n.p2align 2\n.Ltable: .long 1b-.Ltable, 2b-.Ltable\n'
JUMP = """
lea .Ltable(%rip), %rcx
movslq (%rcx,%rax,4), %rdx
add %rcx, %rdx
jmp *%rdx
1: nop
2: ret
"""


def found(assemble: Assemble, before: str) -> Switch:
    code = code_of(assemble(function("_start", before + JUMP) + TABLE), "_start")
    row = code.kind.tolist().index(Kind.INDIRECT_JUMP)
    return switch_of(code, row)


@pytest.mark.parametrize(
    ("before", "first", "count"),
    [
        ("", 0, None),
        ("cmp $5, %eax; ja 2f", 0, 6),
        ("cmp $5, %al; jae 2f; movzbl %al, %eax", 0, 5),
        ("lea -65(%rdi), %eax; cmp $25, %eax; ja 2f", 65, 26),
        ("sub $3, %edi; cmp $200, %edi; ja 2f; mov %edi, %eax", 3, 201),
        ("dec %eax; cmp $5, %eax; ja 2f", 1, 6),
        ("add $7, %rax; cmp $5, %rax; ja 2f", -7, 6),
        ("sub $9, %eax; mov %eax, %esi; cmp $5, %esi; ja 2f; mov %esi, %eax", 9, 6),
        ("sub $9, %eax; call 2f; cmp $5, %eax; ja 2f", 0, 6),
        ("sub $9, %eax; xor %eax, %eax; cmp $5, %eax; ja 2f", 0, 6),
        ("sub $9, %eax; cmp $5, %edi; ja 2f", 9, None),
        ("sub $9, %eax; cmp $5, %eax; jg 2f", 9, None),
        ("sub $9, %eax; mov %rax, -8(%rbp); sub $5, %eax; ja 2f; mov -8(%rbp), %rax", 9, 6),
    ],
)
def test_values_behind_a_table(
    assemble: Assemble, before: str, first: int, count: int | None
) -> None:
    switch = found(assemble, before)
    assert (switch.first, switch.count) == (first, count)
    assert (switch.default is None) == (count is None)


@pytest.mark.parametrize(
    ("before", "branch", "told"),
    [
        ("83ff05", "7405", "== 5"),
        ("83ff05", "0f8500000000", "!= 5"),
        ("83fffb", "7c05", "< -5"),
        ("83fffb", "7205", "< 4294967291 unsigned"),
        ("4883fffb", "7705", "> 18446744073709551611 unsigned"),
        ("3cff", "7605", "<= 255 unsigned"),
        ("3d00010000", "7f05", "> 256"),
        ("85c0", "7405", "== 0"),
        ("4885c0", "7805", "< 0"),
        ("4d85c0", "7405", "== 0"),
        ("4c85c0", "7405", None),
        ("85c8", "7405", None),
        ("39c8", "7405", None),
        ("90", "7405", None),
        ("83ff05", "7005", None),
        ("83ff05", "e3fe", None),
        ("", "7405", None),
    ],
)
def test_what_a_branch_is_taken_for(before: str, branch: str, told: str | None) -> None:
    assert condition(bytes.fromhex(branch), bytes.fromhex(before)) == told
