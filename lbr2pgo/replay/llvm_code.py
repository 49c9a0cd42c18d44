"""What llvm-profgen takes for code: all else of a program is outside to it."""

from __future__ import annotations

from collections.abc import Callable

from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges, PlacedAddresses
from lbr2pgo.support.arrays import Bools


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


def code_of_llvm(program: Program) -> Callable[[PlacedAddresses], Bools]:
    """Judges addresses (n,): whether llvm-profgen knows an instruction that starts there.

    LLVM: llvm/tools/llvm-profgen/ProfiledBinary.h, addressIsCode.
    """
    ranges = disassembled_by_llvm(program)

    def is_code(addresses: PlacedAddresses) -> Bools:
        is_start = program.instructions_for(addresses).index_of(addresses) >= 0
        found: Bools = is_start & (ranges.around(addresses) >= 0)
        return found

    return is_code
