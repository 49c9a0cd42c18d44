from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import run

import numpy as np
import pytest
from builders.elf import Function, elf

from lbr2pgo.program.dwarf.debug_info import DebugInfo, DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.prologues import in_prologue_or_epilogue

BASE = 0x2000
CODE = bytes.fromhex(
    "55"  # 2000 push %rbp        f
    "4889e5"  # 2001 mov %rsp,%rbp
    "90"  # 2004 nop
    "31c0"  # 2005 xor %eax,%eax
    "5d"  # 2007 pop %rbp
    "c3"  # 2008 ret
    "90"  # 2009 nop               g
    "90"  # 200a nop
    "90"  # 200b nop
    "c3"  # 200c ret
)


class Debug:
    """Debug information that knows where the two functions are."""

    def functions_for(self, addresses: np.ndarray) -> DwarfFunctions:
        return DwarfFunctions(
            np.array([BASE, BASE + 9], np.uint64), np.array([BASE + 9, BASE + 13], np.uint64),
            np.array([0, 1], np.int32), ("f", "g"),
        )  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Program:
    path = tmp_path / "program"
    path.write_bytes(elf(CODE, BASE, [Function("f", BASE, 9), Function("g", BASE + 9, 4)]))
    return Program.open(path)


def test_the_first_two_instructions_and_the_last_two_of_each_function_are_marked(
    program: Program,
) -> None:
    places = np.array([0, 1, 4, 5, 7, 8, 9, 10, 11, 12], np.uint64)
    found = in_prologue_or_epilogue(places + np.uint64(BASE), program, Debug())  # type: ignore[arg-type]
    assert places[~found].tolist() == [4, 5]


def test_an_address_between_instructions_or_outside_the_code_is_not_marked(
    program: Program,
) -> None:
    odd = np.array([BASE + 2, BASE + 0x100000], np.uint64)
    assert not in_prologue_or_epilogue(odd, program, Debug()).any()  # type: ignore[arg-type]


def test_what_only_stands_near_a_border_is_not_marked(tmp_path: Path) -> None:
    """Between the last instruction of `f` and the return that is all of `g` lies padding."""
    code = bytes.fromhex("90" * 5 + "0f0b" + "cc" * 9 + "c3")
    path = tmp_path / "program"
    path.write_bytes(elf(code, BASE, [Function("f", BASE, 7), Function("g", BASE + 16, 1)]))
    places = np.array([BASE + 5, BASE + 16], np.uint64)
    found = in_prologue_or_epilogue(places, Program.open(path), Debug())  # type: ignore[arg-type]
    assert found.tolist() == [False, True]


def test_functions_that_only_symbols_know_start_where_a_symbol_has_a_size(
    tmp_path: Path, tool: Callable[[str], str]
) -> None:
    """As llvm-profgen reads the symbols of a program with probes."""
    source, path = tmp_path / "p.c", tmp_path / "p"
    body = "nop; nop; nop; nop; ud2"
    source.write_text(
        "int _start(void) { return 0; }\n"
        f'asm(".type sized, @function; sized: {body}; .size sized, .-sized");\n'
        f'asm(".type bare, @function; bare: {body}");\n'
    )
    flags = ["-O2", "-g", "-fpseudo-probe-for-profiling", "-nostdlib", "-static"]
    run([tool("clang-22"), "-fuse-ld=lld", *flags, source, "-o", path], check=True)
    program = Program.open(path)
    marked = [
        in_prologue_or_epilogue(
            np.array([program.address_of(name)], np.uint64), program, DebugInfo(program.debug_files)
        ).item()
        for name in ("sized", "bare")
    ]
    assert marked == [True, False]
