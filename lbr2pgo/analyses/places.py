"""Addresses as people read them: function, and source line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Unit, Value
from lbr2pgo.counting.mapped_files import UNKNOWN
from lbr2pgo.program.dwarf.debug_info import CodeInfo, Lines
from lbr2pgo.program.process import Process
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddress, PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass

OUTSIDE = "[outside]"
"""Stands for the function of an address in another image that is not known."""


@dataclass(frozen=True, slots=True)
class NamedPlaces:
    """n addresses with what is known of each; None where nothing is."""

    address: tuple[PlacedAddress | None, ...]
    function: tuple[str, ...]
    line: tuple[str | None, ...]
    column: tuple[str | None, ...]
    """In the line; of two branches of one line, as of a macro, the same if it is the macro's."""
    file: tuple[str | None, ...] | None
    """The image; None where the program is only one."""

    def columns(self, prefix: str = "", title: str = "") -> list[tuple[Column, Sequence[Value]]]:
        """Columns of a table, with names and titles that begin so."""
        return [
            (Column(f"{prefix}function", f"{title}function", Unit.FUNCTION, FIGURE), self.function),
            *file_column(self.file, prefix, title),
            (Column(f"{prefix}line", f"{title}source line", Unit.LOCATION, FIGURE), self.line),
            (Column(f"{prefix}address", f"{title}address", Unit.ADDRESS), self.address),
        ]


def file_column(
    files: Sequence[str | None] | None, prefix: str = "", title: str = ""
) -> list[tuple[Column, Sequence[Value]]]:
    """A column of images, if there are several."""
    return (
        []
        if files is None
        else [(Column(f"{prefix}file", f"{title}file", Unit.TEXT, SPARE), files)]
    )


class PlaceNames:
    """Names functions and source lines of one program, and files outside of it."""

    def __init__(
        self, program: Program, debug: CodeInfo, outside: Sequence[str] = (UNKNOWN,)
    ) -> None:
        """Take files outside of the program by number; the first stands for none."""
        self._program, self._debug, self._outside = program, debug, outside

    def of(
        self, addresses: PlacedAddresses, known: Bools | None = None, file: I64 | None = None
    ) -> NamedPlaces:
        """Describe placed addresses (n,); where `known` is False, `file` tells where each is."""
        inside = np.ones(len(addresses), np.bool_) if known is None else known
        at = np.where(inside, addresses, np.uint64(0))
        numbers = [0] * len(addresses) if file is None else file.tolist()
        is_inside = inside.tolist()
        functions, files, raw = self.functions(at), self.files(at), self.raw_lines(at)
        lines = _lines(raw)
        if files is not None:
            files = [
                file if here else self._outside[number] if number else None
                for file, here, number in zip(files, is_inside, numbers, strict=True)
            ]
        return NamedPlaces(
            address=tuple(
                a if here else None for a, here in zip(at.tolist(), is_inside, strict=True)
            ),
            function=tuple(
                name if here else self.outside(number)
                for name, here, number in zip(functions, is_inside, numbers, strict=True)
            ),
            line=tuple(line if here else None for line, here in zip(lines, is_inside, strict=True)),
            column=tuple(
                str(column) if here and column else None
                for column, here in zip(raw.column.tolist(), is_inside, strict=True)
            ),
            file=None if files is None else tuple(files),
        )

    def outside(self, number: int) -> str:
        """What stands for the functions of a file outside the program."""
        name = self.outside_file(number)
        return name if name.startswith("[") else f"[{name}]"

    def outside_file(self, number: int) -> str:
        """A file outside the program."""
        return self._outside[number] if number else OUTSIDE

    def files(self, addresses: PlacedAddresses) -> list[str | None] | None:
        """The image of each address; None where the program is only one."""
        if not isinstance(self._program, Process):
            return None
        part_of = self._program.part_of
        return [part_of(address).name for address in addresses.tolist()]

    def functions(self, addresses: PlacedAddresses) -> list[str]:
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

    def lines(self, addresses: PlacedAddresses) -> list[str | None]:
        """`file:line` of each address, None where the debug information has none.

        Line 0 means that the compiler merged code of several lines.
        """
        return _lines(self.raw_lines(addresses))

    def columns(self, addresses: PlacedAddresses) -> list[str | None]:
        """`file:line:column` of each address; as `lines` where no column is said."""
        found = self.raw_lines(addresses)
        return [
            f"{line}:{column}" if line and column else line
            for line, column in zip(_lines(found), found.column.tolist(), strict=True)
        ]

    def raw_lines(self, addresses: PlacedAddresses) -> Lines:
        """Lines as numbers, for grouping."""
        return self._debug.lines(addresses)


def _lines(found: Lines) -> list[str | None]:
    files = short_paths(found.files)
    return [
        f"{files[file]}:{line}" if file >= 0 else None
        for file, line in zip(found.file.tolist(), found.line.tolist(), strict=True)
    ]


def short_paths(paths: Sequence[str]) -> list[str]:
    """Each file's name alone where no other file has it, else its whole path."""
    names = [PurePosixPath(path).name for path in paths]
    uses = Counter(name for _, name in set(zip(paths, names, strict=True)))
    return [n if uses[n] == 1 else path for path, n in zip(paths, names, strict=True)]
