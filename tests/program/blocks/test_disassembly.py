from __future__ import annotations

from builders.bolt import Assemble, blocks_of, function


def test_a_jump_to_the_padding_is_no_jump(assemble: Assemble) -> None:
    program = assemble(function("_start", "nop\njmp 1f") + "1: .p2align 4\n" + function("f", "ret"))
    assert blocks_of(program) == [(0, 1, False)]
