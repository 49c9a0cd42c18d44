"""The line table of one unit: from an address to file, line and discriminator."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.native import dwarf_lines as kernels
from lbr2pgo.native.dwarf_file_tables import NAME, read_classic_file, read_file_tables
from lbr2pgo.native.dwarf_units import COMP_DIR
from lbr2pgo.program.dwarf.container import Container, StringSection
from lbr2pgo.support.arrays import I64, U64, Bytes, Records

NO_FILE = 0xFFFFFFFF
"""A file number that no table has."""


@dataclass(frozen=True)
class LineTable:
    """Rows and sequences of one line program, and the names of its files."""

    container: Container = field(repr=False)
    unit: int
    """Index of the unit that the program was read for: its directory, its string offsets."""
    version: int
    rows: Records
    """(n,) rows of `native.dwarf_lines.ROW`."""
    sequences: Records
    """(k,) rows of `native.dwarf_lines.SEQUENCE`, by their ends."""
    directories: Records
    files: Records
    """Numbered from 0 in DWARF 5, from 1 before."""
    is_complete: bool
    """Whether the program ran to its end."""

    def look_up(self, addresses: U64) -> tuple[npt.NDArray[Any], ...]:
        """(found, file, line, discriminator) of each address, (n,) each.

        What is not found has the file number `NO_FILE`: 0 is a file in DWARF 5.

        An address whose row names a file that is not there is not found, as in LLVM
        (LLVM: DWARFDebugLine.cpp getFileLineInfoForAddress).
        """
        at = kernels.look_up(addresses, self.rows, self.sequences)
        rows = self.rows[at] if len(self.rows) else np.zeros(len(at), kernels.ROW)
        first = 0 if self.version >= 5 else 1
        found = (at >= 0) & (rows["file"] >= first) & (rows["file"] < len(self.files) + first)
        file = np.where(found, rows["file"], np.int64(NO_FILE))  # no int32, as the column is
        return (found, file, *(np.where(found, rows[f], 0) for f in ("line", "discriminator")))

    def file_name(self, index: int) -> str:
        """Path of a file, absolute if the table allows it; empty if there is no such file."""
        at = index - (self.version < 5)
        if not 0 <= at < len(self.files):
            return ""
        name = self._file_names[at] or ""
        if not name or name.startswith("/"):
            return name
        number = int(self.files["directory"][at])
        directory = self._directory(number)
        in_unit = self.version < 5 or number != 0
        base = self._unit_directory if in_unit and not directory.startswith("/") else ""
        return "/".join(part.rstrip("/") or "/" for part in (base, directory, name) if part)

    def _directory(self, number: int) -> str:
        at = number - (self.version < 5)
        return self._directory_names[at] or "" if 0 <= at < len(self.directories) else ""

    @cached_property
    def _file_names(self) -> list[str | None]:
        return self._texts(self.files)

    @cached_property
    def _directory_names(self) -> list[str | None]:
        return self._texts(self.directories)

    @cached_property
    def _unit_directory(self) -> str:
        return self.container.root_text(self.unit, COMP_DIR) or ""

    def _texts(self, names: Records) -> list[str | None]:
        units = np.full(len(names), self.unit)
        inline = StringSection(self.container.lines)
        return self.container.texts(units, names["form"], names["value"], inline)


def read_line_table(container: Container, unit: int) -> LineTable | None:
    """The line table that a unit refers to; None if there is none that can be read."""
    row = container.units[unit]
    header = np.zeros(1, kernels.HEADER)
    data, offset = container.lines, int(row["lines"])
    if offset < 0 or not kernels.read_header(data, offset, int(row["address_size"]), header[0]):
        return None
    directories, files = read_file_tables(data, header[0])
    rows, sequences, defined, is_complete = kernels.run_program(
        data, header[0], np.zeros(1, kernels.STATE)[0]
    )
    return LineTable(
        container=container,
        unit=unit,
        version=int(header[0]["version"]),
        rows=rows.copy(),  # a view of an array that was grown by doubling
        sequences=sequences[np.argsort(sequences["high"], kind="stable")],
        directories=directories,
        files=np.concatenate([files, _defined_files(data, defined, int(header[0]["end"]))]),
        is_complete=is_complete,
    )


def _defined_files(data: Bytes, positions: I64, end: int) -> Records:
    """Files that the program itself defines, as old assemblers do."""
    files = np.zeros(len(positions), NAME)
    for file, position in zip(files, positions, strict=True):
        read_classic_file(data, position, end, file)
    return files
