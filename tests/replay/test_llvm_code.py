from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import TESTBINS

from lbr2pgo.program.program import Program
from lbr2pgo.replay.llvm_code import code_of_llvm, disassembled_by_llvm
from lbr2pgo.support.addresses import image_array

_INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\t", re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["x86-64/shapes.pie", "x86-64/interp.static", "x86-64/shapes.pie+"]
)
def test_it_is_what_llvm_profgen_disassembles(
    tool: Callable[[str], str], tmp_path: Path, name: str
) -> None:
    """`+`: with a symbol in the linkage table, which is left out all the same."""
    binary = TESTBINS / name.rstrip("+")
    if name.endswith("+"):
        with_symbol = tmp_path / "with-symbol"
        add = ["--add-symbol", "stubs=.plt:0,local"]
        subprocess.run([tool("llvm-objcopy-22"), *add, binary, with_symbol], check=True)
        binary = with_symbol
    words = ("--show-disassembly-only", f"--binary={binary}", "--output=/dev/null")
    shown = subprocess.check_output([tool("llvm-profgen-22"), *words], text=True)
    theirs = image_array(int(address, 16) for address in _INSTRUCTION.findall(shown))
    assert len(theirs) > 100
    ours = disassembled_by_llvm(Program.open(binary))
    assert (ours.around(theirs) >= 0).all()
    assert np.isin(ours.start, theirs).all()
    instructions = Program.open(binary).instructions_for(ours.start)
    inside = instructions.address[ours.around(instructions.address) >= 0]
    assert np.isin(inside, theirs).mean() > 0.99  # LLVM can't decode all


def test_only_where_an_instruction_starts_is_code() -> None:
    program = Program.open(TESTBINS / "x86-64" / "shapes.pie")
    (start,) = program.symbols.start[program.symbols.names.index("main")].reshape(1)
    table = program.instructions_for(image_array((start,)))
    long = table.address[table.size > 1]
    (stubs,) = (s for s in program.image.sections if s.name == ".plt")
    asked = np.concatenate((long, long + np.uint64(1), image_array((0, stubs.address))))
    assert code_of_llvm(program)(asked).tolist() == [True] * len(long) + [False] * (len(long) + 2)
