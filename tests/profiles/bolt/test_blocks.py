"""Blocks, labels, jump tables and callers, on code small enough to be read."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import C_SOURCES, build

from lbr2pgo.profiles.bolt.blocks import build_blocks, find_labels
from lbr2pgo.profiles.bolt.context import idioms_of
from lbr2pgo.profiles.bolt.disassembly import Disassembly, disassembled
from lbr2pgo.profiles.bolt.functions import discover
from lbr2pgo.profiles.bolt.jump_tables import find_jump_tables
from lbr2pgo.profiles.bolt.references import possible_callers, read_references, without_data
from lbr2pgo.profiles.bolt.x86_idioms import X86_64, jump_tables, rip_relative_leas
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.elf.relocations import dynamic_relocations, relative_targets
from lbr2pgo.program.program import Program

Tool = Callable[[str], str]
Assemble = Callable[..., Program]


@pytest.fixture
def assemble(tmp_path: Path, tool: Tool) -> Assemble:
    def link(source: str, *flags: str) -> Program:
        (tmp_path / "s.s").write_text(f".text\n{source}\n")
        subprocess.run(
            [tool("clang-22"), "-c", tmp_path / "s.s", "-o", tmp_path / "s.o"], check=True
        )
        command = [tool("ld.lld-22"), *flags, tmp_path / "s.o", "-o", tmp_path / "program"]
        subprocess.run(command, check=True)
        return Program.open(tmp_path / "program")

    return link


def function(name: str, body: str) -> str:
    return f".globl {name}\n.type {name},@function\n{name}:\n{body}\n.size {name},.-{name}\n"


def code_of(program: Program, *names: str) -> Disassembly:
    """Some functions, disassembled; all if none is named."""
    image, functions = program.image, discover(program.image, program.symbols)
    rows = [functions.names.index(name) for name in names] or list(range(len(functions)))
    table = decode(image, functions.ranges.take(np.array(rows)))
    return idioms_of(image).normalized(disassembled(image, functions, table))


def blocks_of(program: Program, name: str = "_start") -> list[tuple[int, int, bool]]:
    """Start and last instruction as offsets in a function, and whether the block falls through."""
    code, callers, image = code_of(program, name), code_of(program), program.image
    callers = callers.take(callers.function != code.function[0])
    labels = find_labels(image, code, callers, read_references(image), idioms_of(image))
    blocks = build_blocks(code, labels)
    start = code.functions.start[code.functions.names.index(name)]
    columns = ((blocks.start - start), (blocks.last - start), blocks.falls)
    return list(zip(*(column.tolist() for column in columns), strict=True))


class TestBlocks:
    def test_calls_end_no_block(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "call _start\nnop\nret"))
        assert blocks_of(program) == [(0, 6, False)]

    def test_conditional_jumps_do_and_so_do_their_targets(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "je 1f\nnop\nnop\n1: ret"))
        assert blocks_of(program) == [(0, 0, True), (2, 3, True), (4, 4, False)]

    def test_a_jump_behind_a_conditional_one_shares_its_block(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "1: nop\nje 1b\njmp 1b\nret"))
        assert blocks_of(program) == [(0, 3, False), (5, 5, False)]

    def test_unless_something_jumps_there(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "1: nop\nje 1b\n2: jmp 1b\njmp 2b"))
        assert blocks_of(program) == [(0, 1, True), (3, 3, False), (5, 5, False)]

    def test_nor_behind_a_conditional_tail_call(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "1: je other\njmp 1b") + function("other", "ret"))
        assert blocks_of(program) == [(0, 0, True), (6, 6, False)]

    def test_a_jump_to_the_next_place_falls_there(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "jmp 1f\n1: ret"))
        assert blocks_of(program) == [(0, 0, True), (2, 2, False)]

    def test_traps_end_a_block_but_breakpoints_and_system_calls_do_not(
        self, assemble: Assemble
    ) -> None:
        program = assemble(function("_start", "int3\nsyscall\nsysretq\nsysexitq\nud2\nhlt\nnop"))
        assert [last for _, last, _ in blocks_of(program)] == [9, 11, 12]
        assert [falls for *_, falls in blocks_of(program)] == [False, False, False]

    def test_a_lock_prefix_is_an_instruction(self, assemble: Assemble) -> None:
        program = assemble(
            function("_start", "je 1f\nlock\n1: incl (%rax)\nlock incl (%rax)\n2: jmp 2b")
        )
        assert blocks_of(program) == [(0, 0, True), (2, 2, True), (3, 6, True), (8, 8, False)]

    def test_a_jump_to_the_padding_is_no_jump(self, assemble: Assemble) -> None:
        program = assemble(
            function("_start", "nop\njmp 1f") + "1: .p2align 4\n" + function("f", "ret")
        )
        assert blocks_of(program) == [(0, 1, False)]

    def test_branches_from_other_functions_make_labels(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "nop\n.Lin: nop\nret") + function("f", "jmp .Lin"))
        assert blocks_of(program) == [(0, 0, True), (1, 2, False)]

    def test_addresses_of_code_make_labels(self, assemble: Assemble) -> None:
        program = assemble(function("_start", "lea 1f(%rip), %rax\n1: ret"))
        assert blocks_of(program) == [(0, 0, True), (7, 7, False)]

    def test_addresses_in_data_make_labels_if_relocations_are_kept(
        self, assemble: Assemble
    ) -> None:
        source = function("_start", "nop\n.Lin: ret") + function("f", "call _start\nret")
        source += '.section .rodata,"a"\n.quad .Lin\n'
        assert blocks_of(assemble(source)) == [(0, 1, False)]
        assert blocks_of(assemble(source, "-q")) == [(0, 0, True), (1, 1, False)]
        assert blocks_of(assemble(source, "-pie", "-z", "notext")) == [(0, 0, True), (1, 1, False)]


DISTANCES = """
lea .Ltable(%rip), %rcx
movslq (%rcx,%rax,4), %rdx
add %rcx, %rdx
jmp *%rdx
1: nop
2: ret
"""
TABLE = '.section .rodata,"a"\n.p2align 2\n.Ltable: .long 1b-.Ltable, 2b-.Ltable, 1b-.Ltable\n'


class TestJumpTables:
    def targets(self, program: Program) -> list[int]:
        code, image = code_of(program, "_start"), program.image
        tables = find_jump_tables(image, code, read_references(image), X86_64)
        return sorted({int(t - code.functions.start[0]) for t in tables.target})

    @pytest.mark.parametrize("flags", [(), ("-q",), ("-pie",), ("-pie", "-q")])
    def test_a_table_of_distances(self, assemble: Assemble, flags: tuple[str, ...]) -> None:
        assert self.targets(assemble(function("_start", DISTANCES) + TABLE, *flags)) == [16, 17]

    def test_the_registers_may_change_roles(self, assemble: Assemble) -> None:
        body = DISTANCES.replace("add %rcx, %rdx\njmp *%rdx", "add %rdx, %rcx\njmp *%rcx")
        assert self.targets(assemble(function("_start", body) + TABLE)) == [16, 17]

    def test_what_comes_between_does_no_harm(self, assemble: Assemble) -> None:
        body = DISTANCES.replace("add", "mov %rax, %rsi\npush %rbx\nadd")
        assert self.targets(assemble(function("_start", body) + TABLE)) == [20, 21]

    @pytest.mark.parametrize("spoiler", ["mov %rax, %rdx", "xor %edx, %edx", "pop %rdx"])
    def test_a_register_set_in_another_way_hides_the_table(
        self, assemble: Assemble, spoiler: str
    ) -> None:
        body = DISTANCES.replace("add", f"{spoiler}\nadd")
        assert self.targets(assemble(function("_start", body) + TABLE)) == []

    def test_unless_relocations_tell(self, assemble: Assemble) -> None:
        body = DISTANCES.replace("add", "mov %rax, %rdx\nadd")
        assert self.targets(assemble(function("_start", body) + TABLE, "-q")) == [19, 20]

    def test_a_table_ends_before_an_entry_that_makes_no_sense(self, assemble: Assemble) -> None:
        longer = TABLE + ".long 5, 2b-.Ltable+1\n"
        assert self.targets(assemble(function("_start", DISTANCES) + longer)) == [16, 17]

    def test_one_target_is_no_table(self, assemble: Assemble) -> None:
        short = '.section .rodata,"a"\n.Ltable: .long 1b-.Ltable, 7\n'
        assert self.targets(assemble(function("_start", DISTANCES) + short)) == []

    @pytest.mark.parametrize(
        "jump", ["jmp *.Ltable(,%rax,8)", "mov .Ltable(,%rax,8), %rcx\njmp *%rcx"]
    )
    def test_a_table_of_addresses(self, assemble: Assemble, jump: str) -> None:
        table = '.section .rodata,"a"\n.p2align 3\n.Ltable: .quad 1b, 2b\n'
        program = assemble(function("_start", f"{jump}\n1: nop\n2: ret") + table)
        length = 7 if jump.startswith("jmp") else 10
        assert self.targets(program) == [length, length + 1]

    @pytest.mark.parametrize(
        "jump", ["jmp *(%rax)", "jmp *.Ltable(%rip)", "jmp *.Ltable(,%rax,4)", "jmp *%r11"]
    )
    def test_other_indirect_jumps_use_none(self, assemble: Assemble, jump: str) -> None:
        table = '.section .rodata,"a"\n.p2align 3\n.Ltable: .quad 1b, 2b\n'
        program = assemble(function("_start", f"{jump}\n1: nop\n2: ret") + table)
        assert len(jump_tables(code_of(program, "_start")).table) == 0

    def test_leas(self, assemble: Assemble) -> None:
        program = assemble(
            function("_start", "lea 1f(%rip), %rax\nlea 1f(%rip), %r15\nlea 1f(%rip), %eax\n1: ret")
        )
        code = code_of(program, "_start")
        rows, taken = rip_relative_leas(code)
        assert rows.tolist() == [0, 1]
        assert (taken - code.functions.start[0]).tolist() == [20, 20]


class TestCallers:
    def test_far_and_near_branches_are_seen(self, assemble: Assemble) -> None:
        entered = function("_start", "nop\n.Lin: nop\nret")
        near = function("near", "nop\njne .Lin")
        far = ".zero 4096, 0x90\n" + function("far", "jne .Lin") + function("calls", "call .Lin")
        bystander = function("bystander", "call _start\nret")
        program = assemble(entered + near + far + bystander)
        code = code_of(program, "_start")
        found = possible_callers(program.image, code, X86_64)
        assert [code.functions.name(i) for i in found] == ["near", "far", "calls"]

    def test_text_that_looks_like_branches_is_left_out(self, assemble: Assemble) -> None:
        entered = function("_start", "nop\n.Lin: mov $1,%eax\nret")
        text = function("text", "jne .Lin\njne .Lin+1\nret")
        code = function("code", "jne .Lin\nret")
        program = assemble(entered + text + code)
        entered, callers = code_of(program, "_start"), code_of(program, "text", "code")
        found = without_data(callers, entered)
        assert {found.functions.name(i) for i in found.function} == {"code"}

    def test_nothing_counts_behind_bytes_that_are_no_code(self, assemble: Assemble) -> None:
        entered = function("_start", "nop\n.Lin: nop\nret")
        half = function("half", "nop\n.byte 0x06\njmp .Lin")
        program = assemble(entered + half)
        assert len(without_data(code_of(program, "half"), code_of(program, "_start"))) == 1

    def test_as_many_as_a_whole_disassembly_finds(self, tmp_path: Path, tool: Tool) -> None:
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


class TestDynamicRelocations:
    def test_packed_ones_say_the_same(self, assemble: Assemble) -> None:
        words = "".join(f".quad _start+{i % 3}\n.zero {i % 2 * 64}\n" for i in range(200))
        source = function("_start", "nop\nnop\nret") + f".data\n.p2align 3\n{words}"
        plain = assemble(source, "-pie")
        expected = dynamic_relocations(plain.image)
        stored = relative_targets(plain.image, expected)
        assert len(np.unique(stored)) == 3
        packed = assemble(source, "-pie", "--pack-dyn-relocs=relr", "-z", "rel")
        found = dynamic_relocations(packed.image)
        assert len(found) == len(expected) == 200
        assert len(relative_targets(packed.image, found)) == 200
        assert np.diff(found["offset"]).tolist() == np.diff(expected["offset"]).tolist()
