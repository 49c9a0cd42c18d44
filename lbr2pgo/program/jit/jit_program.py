"""`JitProgram`: code that a process made, as a program like those in files."""

from __future__ import annotations

from functools import cached_property

from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.dwarf.debug_info import CodeInfo
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.program.jit.made_image import JitImage
from lbr2pgo.program.jit.made_lines import JitLines
from lbr2pgo.program.jit.pieces import SeenBranches, cut_where_seen
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import I64


class JitProgram(Program):
    """The code of one process that no file shows."""

    def __init__(self, made: JitImage, seen: SeenBranches | None = None) -> None:
        """Take what was made and, for code without bytes, what was recorded of it."""
        super().__init__(made.image)
        self._made = made
        self._seen = seen or SeenBranches.nothing()

    def recorded(self, seen: SeenBranches) -> JitProgram:
        """The same, of which this is known."""
        return JitProgram(self._made, seen)

    def debug_info(self) -> CodeInfo:
        """Lines as the compiler told them."""
        return JitLines.of(self._made)

    @cached_property
    def symbols(self) -> Symbols:
        """The names of functions."""
        return self._made.symbols()

    def _decode_new(self, regions: I64) -> InstructionTable:
        if self._made.has_code:
            return super()._decode_new(regions)
        return cut_where_seen(self.regions.ranges.take(regions), self._seen)
