"""Blocks and labels, on code small enough to be read."""

from __future__ import annotations

from builders.bolt import Assemble, blocks_of, function


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
