"""What llvm-profgen takes for code: all else of a program is outside to it."""

from __future__ import annotations

from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges


def disassembled_by_llvm(program: Program) -> ByteRanges:
    """Sections of code from their first symbol on, but for `.plt`, ordered.

    LLVM: llvm/tools/llvm-profgen/ProfiledBinary.cpp, disassemble.
    """
    symbols = program.symbols
    ranges = []
    for number, section in enumerate(program.image.sections):
        starts = symbols.start[symbols.section == number]
        if section.is_code and section.name != ".plt" and len(starts):
            ranges.append((int(starts.min()), section.end))
    return ByteRanges.of(sorted(ranges))
