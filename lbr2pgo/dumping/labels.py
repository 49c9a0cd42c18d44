"""Addresses with the function that they lie in."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lbr2pgo.program.program import Program


class BranchLabels:
    """Writes image addresses of one program as `0x1234 <name+0x10>`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def of(self, address: int) -> str:
        """One address."""
        return f"{address:#x} <{self.name(address)}>"

    def all(self, addresses: Iterable[int]) -> str:
        """Several, parted by commas."""
        return ", ".join(map(self.of, addresses))

    def name(self, address: int) -> str:
        """Function and offset; for entries of a linkage table the function they lead to."""
        regions = self._program.regions
        row = int(regions.containing(np.array([address], np.uint64))[0])
        if row < 0:
            return "no code"
        name = regions.label(row)
        if not name:
            return "no symbol"
        offset = address - int(regions.start[row])
        return name + (f"+{offset:#x}" if offset else "")
