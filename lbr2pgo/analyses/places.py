"""Addresses as people read them: function, and source line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from lbr2pgo.analyses.table import Column, Unit, Value
from lbr2pgo.program.dwarf.debug_info import DebugInfo, Lines
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import Bools

OUTSIDE = "[outside]"
"""Stands for the function of an address in another image, or of none that was recorded."""


@dataclass(frozen=True, slots=True)
class NamedPlaces:
    """n addresses with what is known of each; None where nothing is."""

    address: tuple[int | None, ...]
    function: tuple[str, ...]
    line: tuple[str | None, ...]

    def columns(self, prefix: str = "", title: str = "") -> list[tuple[Column, Sequence[Value]]]:
        """Three columns of a table, with names and titles that begin so."""
        return [
            (Column(f"{prefix}function", f"{title}function", Unit.FUNCTION), self.function),
            (Column(f"{prefix}line", f"{title}source line", Unit.LOCATION), self.line),
            (Column(f"{prefix}address", f"{title}address", Unit.ADDRESS), self.address),
        ]


class PlaceNames:
    """Names functions and source lines of one program."""

    def __init__(self, program: Program, debug: DebugInfo) -> None:
        self._program, self._debug = program, debug

    def of(self, addresses: ImageAddresses, known: Bools | None = None) -> NamedPlaces:
        """Describe image addresses (n,); where `known` is False there is none."""
        inside = np.ones(len(addresses), np.bool_) if known is None else known
        functions = [
            name if is_inside else OUTSIDE
            for name, is_inside in zip(self.functions(addresses), inside.tolist(), strict=True)
        ]
        lines = self.lines(addresses)
        pairs = list(zip(addresses.tolist(), lines, inside.tolist(), strict=True))
        return NamedPlaces(
            address=tuple(address if is_inside else None for address, _, is_inside in pairs),
            function=tuple(functions),
            line=tuple(line if is_inside else None for _, line, is_inside in pairs),
        )

    def functions(self, addresses: ImageAddresses) -> list[str]:
        """The function that holds each address; its address in brackets where no symbol does."""
        regions = self._program.regions
        found = regions.containing(addresses)
        names = {row: self.region(row) for row in set(found.tolist())}
        return [names[row] for row in found.tolist()]

    def region(self, row: int) -> str:
        """Name of a region of the program, see `Program.regions`."""
        if row < 0:
            return "[no code]"
        regions = self._program.regions
        return regions.label(row) or f"[{int(regions.start[row]):#x}]"

    def lines(self, addresses: ImageAddresses) -> list[str | None]:
        """`file:line` of each address, None where the debug information has none.

        Line 0 means that the compiler merged code of several lines.
        """
        found = self._debug.lines(addresses)
        files = short_paths(found.files)
        return [
            f"{files[file]}:{line}" if file >= 0 else None
            for file, line in zip(found.file.tolist(), found.line.tolist(), strict=True)
        ]

    def raw_lines(self, addresses: ImageAddresses) -> Lines:
        """Lines as numbers, for grouping."""
        return self._debug.lines(addresses)


def short_paths(paths: Sequence[str]) -> list[str]:
    """Each file's name alone where no other file has it, else its whole path."""
    names = [PurePosixPath(path).name for path in paths]
    uses = Counter(name for _, name in set(zip(paths, names, strict=True)))
    return [n if uses[n] == 1 else path for path, n in zip(paths, names, strict=True)]
