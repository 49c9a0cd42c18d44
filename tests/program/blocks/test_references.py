"""Functions that may enter others in the middle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from builders.bolt import C_SOURCES, Assemble, build, code_of, function
from builders.fixtures import Tool

from lbr2pgo.program.blocks.references import possible_callers, without_data
from lbr2pgo.program.blocks.x86_idioms import X86_64
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program


def test_far_and_near_branches_are_seen(assemble: Assemble) -> None:
    entered = function("_start", "nop\n.Lin: nop\nret")
    near = function("near", "nop\njne .Lin")
    far = ".zero 4096, 0x90\n" + function("far", "jne .Lin") + function("calls", "call .Lin")
    bystander = function("bystander", "call _start\nret")
    program = assemble(entered + near + far + bystander)
    code = code_of(program, "_start")
    found = possible_callers(program.image, code, X86_64)
    assert [code.functions.name(i) for i in found] == ["near", "far", "calls"]


def test_text_that_looks_like_branches_is_left_out(assemble: Assemble) -> None:
    entered = function("_start", "nop\n.Lin: mov $1,%eax\nret")
    text = function("text", "jne .Lin\njne .Lin+1\nret")
    code = function("code", "jne .Lin\nret")
    program = assemble(entered + text + code)
    entered, callers = code_of(program, "_start"), code_of(program, "text", "code")
    found = without_data(callers, entered)
    assert {found.functions.name(i) for i in found.function} == {"code"}


def test_nothing_counts_behind_bytes_that_are_no_code(assemble: Assemble) -> None:
    entered = function("_start", "nop\n.Lin: nop\nret")
    half = function("half", "nop\n.byte 0x06\njmp .Lin")
    program = assemble(entered + half)
    assert len(without_data(code_of(program, "half"), code_of(program, "_start"))) == 1


def test_as_many_as_a_whole_disassembly_finds(tmp_path: Path, tool: Tool) -> None:
    program = Program.open(build(tmp_path / "static", C_SOURCES, tool("gcc"), "-O2", "-static"))
    everything = code_of(program)
    functions = everything.functions
    direct = everything.has_target & everything.is_kind(Kind.COND, Kind.JUMP, Kind.CALL)
    hit = functions.containing(everything.target)
    inside = direct & (hit >= 0) & (hit != everything.function)
    inside[inside] &= everything.target[inside] != functions.start[hit[inside]]
    inside &= everything.at(everything.target) >= 0
    for entered in np.unique(hit[inside])[:20].tolist():
        code = code_of(program, functions.name(entered))
        found = possible_callers(program.image, code, X86_64)
        assert set(everything.function[inside & (hit == entered)]) <= set(found.tolist())
