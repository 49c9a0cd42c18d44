from __future__ import annotations

import numpy as np
import pytest
from builders.bolt import Assemble, blocks_of, function

from lbr2pgo.program.blocks.binary_context import analyze


def test_a_jump_to_the_padding_is_no_jump(assemble: Assemble) -> None:
    program = assemble(function("_start", "nop\njmp 1f") + "1: .p2align 4\n" + function("f", "ret"))
    assert blocks_of(program) == [(0, 1, False)]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
def test_pieces_are_whole_functions(
    assemble: Assemble, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    body = "je 1f\nnop\n1: ret"
    program = assemble("".join(function(name, body) for name in ("_start", "f", "g")))
    blocks = blocks_of(program)
    monkeypatch.setattr("lbr2pgo.program.blocks.disassembly._AT_ONCE", at_once)
    code = analyze(program, program.functions.start, keep_all=True).code
    pieces = list(code.pieces())
    assert len(pieces) == (1 if at_once > len(code) else 3)
    assert [row for piece in pieces for row in piece.address.tolist()] == code.address.tolist()
    assert all(len(np.unique(piece.function)) == 3 // len(pieces) for piece in pieces)
    assert blocks_of(program) == blocks
