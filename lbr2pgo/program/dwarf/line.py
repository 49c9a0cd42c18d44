"""The line table of one unit: from an address to file, line and discriminator."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.dwarf import _lines as native
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.arrays import I32, U32, U64, Bools, Records
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import table


@table
class Lines:
    """Source lines of n addresses, without their functions."""

    file: I32
    """(n,), index into `files`, -1 where no line table covers the address."""
    line: U32
    discriminator: U32
    column: U32
    """(n,), from 1 on; 0 where none is said."""
    files: tuple[str, ...]


class Origin(NamedTuple):
    """What is said of a source file besides its name."""

    directory: str
    """That it was compiled in."""
    digest: bytes | None
    """MD5 of its content at that time; of DWARF 5 only."""


NO_ORIGIN = Origin("/", None)


@dataclass(frozen=True)
class LineTable:
    """Rows and sequences of one line program, and the names of its files."""

    dwarf: Dwarf = field(repr=False)
    unit: int
    """Index of the unit that the program was read for."""
    version: int
    rows: Records
    """(n,) rows of `ROW`."""
    sequences: Records
    """(k,) rows of `SEQUENCE`, by their ends."""
    directories: Records
    """Rows of `NAME`, as those of files; both are numbered from 0 in DWARF 5, from 1 before."""
    files: Records
    is_complete: bool
    """Whether the program ran to its end."""

    def holds(self, addresses: U64) -> bool:
        """Whether no rows for these were left out."""
        at = np.searchsorted(self.sequences["high"], addresses, "right")
        at = at[at < len(self.sequences)]
        return not (self._is_left_out[at]).any()

    @cached_property
    def _is_left_out(self) -> Bools:
        left_out: Bools = self.sequences["first"] == self.sequences["last"]
        return left_out

    def look_up(self, addresses: U64) -> Records:
        """(n,) rows of `FOUND`, of addresses that it holds.

        An address whose row names a file that is not there is not found, as in LLVM
        (LLVM: DWARFDebugLine.cpp getFileLineInfoForAddress).
        """
        first = self._first_number
        past = first + len(self.files)
        return native.look_up(addresses, self.rows, self.sequences, first, past)

    def file_name(self, number: int) -> str:
        """Path of a file, absolute if the table allows it; empty if there is no such file."""
        at = number - self._first_number
        name = self._file_names[at] if 0 <= at < len(self.files) else None
        if not name or name.startswith("/"):
            return name or ""
        directory_number = int(self.files["directory"][at])
        directory = self._directory(directory_number)
        in_unit = self.version < 5 or directory_number != 0
        base = self._unit_directory if in_unit and not directory.startswith("/") else ""
        return "/".join(part.rstrip("/") or "/" for part in (base, directory, name) if part)

    def origin(self, number: int) -> Origin:
        """See `Origin`."""
        return Origin(self._unit_directory, self._digest(number))

    def _digest(self, number: int) -> bytes | None:
        at = number - self._first_number
        if not 0 <= at < len(self.files):
            return None
        digest = self.files[["digest_low", "digest_high"]][at]
        words = np.array([digest["digest_low"], digest["digest_high"]], np.uint64)
        return words.tobytes() if words.any() else None

    @property
    def _first_number(self) -> int:
        return 0 if self.version >= 5 else 1

    def _directory(self, number: int) -> str:
        at = number - self._first_number
        return self._directory_names[at] or "" if 0 <= at < len(self.directories) else ""

    @cached_property
    def _file_names(self) -> list[str | None]:
        return self.dwarf.texts.decode(self.files["place"].copy())

    @cached_property
    def _directory_names(self) -> list[str | None]:
        return self.dwarf.texts.decode(self.directories["place"].copy())

    @cached_property
    def _unit_directory(self) -> str:
        return self.dwarf.text(self.dwarf.units["comp_dir"][self.unit]) or ""


def read_line_table(dwarf: Dwarf, unit: int, wanted: U64 | None = None) -> LineTable | None:
    """The line table that a unit refers to; None if there is none that can be read.

    If only some addresses are wanted, which must ascend, rows far from them are left out.
    """
    found = native.run_program(dwarf.with_lines(unit), dwarf.units, unit, wanted)
    if found is None:
        return None
    version, rows, sequences, directories, files, is_complete = found
    order = np.argsort(sequences["high"], kind="stable")
    return LineTable(dwarf, unit, version, rows, sequences[order], directories, files, is_complete)
