"""BOLT's fdata: branches between symbols, as perf2bolt writes and llvm-bolt reads them.

A line is one row, its fields parted by blanks::

    1 main 3fb 1 strchr 0 4 221         a branch: from, to, mispredictions, count
    1 main 3fb 7                        a sample (files that begin with `no_lbr`): place, count
    4 main 3fb 4 table 10 9             a load: instruction, data, count

A place is a kind (0: not in a symbol, 1: global symbol, 2: local symbol; loads add 3), a name in
which blanks and backslashes are escaped by a backslash, and a hexadecimal offset. A first line
`boltedcollection` says that the profiled binary was BOLT's own output. Branches and samples never
share a file; loads may follow either.

Source: BOLT, bolt/lib/Profile/DataReader.cpp and DataAggregator.cpp (writeAggregatedFile).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    GLOBAL_SYMBOL,
    LOCAL_SYMBOL,
    NOT_A_SYMBOL,
    UNKNOWN,
    Column,
    Fdata,
    FdataBranches,
    FdataLoads,
    FdataSamples,
    FdataTable,
    TableT,
    in_bolt_order,
)
from lbr2pgo.profiles.table_lines import table_lines
from lbr2pgo.support.errors import InputError, OutputError, readable
from lbr2pgo.support.output import PathLike, write_to
from lbr2pgo.support.texts import Texts

__all__ = [
    "GLOBAL_SYMBOL",
    "LOCAL_SYMBOL",
    "NOT_A_SYMBOL",
    "UNKNOWN",
    "Fdata",
    "FdataBranches",
    "FdataLoads",
    "FdataSamples",
    "in_bolt_order",
    "is_fdata",
    "parse",
    "read",
    "write",
]

_LARGEST_COUNT = 2**63 - 1  # llvm-bolt reads counts as signed numbers
_READ_SIZE = 1 << 22
_LONGEST_LINE = 1 << 20


def write(fdata: Fdata, destination: PathLike | BinaryIO) -> None:
    """Write the rows in their order (`in_bolt_order` gives BOLT's) to a path or a binary stream.

    Raises OutputError for what the format can't hold: line breaks in names, counts from 2**63.
    """
    names = Texts.of_bytes([_escaped(name) for name in fdata.names])
    header = _header(fdata)

    def write_all(stream: BinaryIO) -> None:
        stream.write(os.fsencode(header))
        for table in fdata.tables():
            stream.writelines(_lines(table, names))

    write_to(destination, write_all)


def _header(fdata: Fdata) -> str:
    header = "boltedcollection\n" if fdata.bolted else ""
    if fdata.samples is None:
        return header
    for event in fdata.events:
        if not event or " " in event or "\n" in event:
            raise OutputError(f"fdata can't hold the event name {event!r}")
    return header + " ".join(("no_lbr", *fdata.events)) + "\n"


def _escaped(name: str) -> bytes:
    if "\n" in name:
        raise OutputError(f"fdata can't hold a name with a line break: {name!r}")
    return os.fsencode(name.replace("\\", "\\\\").replace(" ", "\\ ") or UNKNOWN)


_SPECIFIERS = {"k": "%d", "n": "%s", "x": "%x", "d": "%d"}


def _lines(table: FdataTable, names: Texts) -> Iterator[bytes]:
    columns = []
    for letter, column in zip(table.form, table.columns(), strict=True):
        if letter == "d" and len(column) and column.max() > _LARGEST_COUNT:
            raise OutputError("a count is too large for fdata, which holds counts below 2**63")
        columns.append(column + table.first_kind if letter == "k" else column)
    return table_lines(" ".join(_SPECIFIERS[letter] for letter in table.form), columns, names)


def read(path: PathLike) -> Fdata:
    """Read a whole fdata file.

    Raises InputError that names the line: no such file, another format, a broken or cut line, a
    number out of range, kinds of lines that don't go together.
    """
    with readable(path), Path(path).open("rb") as stream:
        return parse(stream, str(path))


def parse(stream: BinaryIO, where: str) -> Fdata:
    """As `read`, from a binary stream; `where` names it in errors."""
    reader = _Reader(where)
    for lines in _whole_lines(stream, where):
        reader.feed(lines)
    return reader.result()


def _whole_lines(stream: BinaryIO, where: str) -> Iterator[bytes]:
    """Blocks of whole lines."""
    rest, line = b"", 1
    while block := stream.read(_READ_SIZE):
        end = block.rfind(b"\n") + 1
        if end:
            whole = rest + block[:end]
            yield whole
            line += whole.count(b"\n")
            rest = block[end:]
        else:
            rest += block
        if len(rest) > _LONGEST_LINE:
            raise InputError("a line has no end: this is no fdata file", where=f"{where}:{line}")
    if rest:
        what = "the last line has no end: the file is cut off"
        raise InputError(what, where=f"{where}:{line}", cure="Make the file again.")


def is_fdata(head: bytes) -> bool:
    """Whether a file that begins with these bytes is an fdata file that is not empty."""
    header = re.match(rb"(?:boltedcollection\n)?(?:no_lbr[ \n])?", head)
    assert header is not None
    row = re.match(rb"[0-5] +(?:[^ \n\\]++|\\.)++ +[0-9a-fA-F]+ ", head[header.end() :])
    return header.end() > 0 or row is not None


class _Names(dict[bytes, int]):
    """Numbers escaped names as they come."""

    def __missing__(self, name: bytes) -> int:
        self[name] = number = len(self)
        return number

    def unescaped(self) -> tuple[str, ...]:
        return tuple(os.fsdecode(re.sub(rb"\\(.)", rb"\1", name)) for name in self)


class _Reader:
    """Takes blocks of whole lines, one after the other."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.line = 1
        self.names = _Names()
        self.bolted = False
        self.events: tuple[str, ...] = ()
        self.main: type[FdataTable] = FdataBranches
        self.current: type[FdataTable] | None = None
        self.parts: dict[type[FdataTable], list[list[Column]]] = {}

    def feed(self, lines: bytes) -> None:
        if self.current is None:
            lines = self._take_header(lines)
            if not lines:
                return
            self.current = self.main
        if self.current is not FdataLoads:
            end = _first_load(lines)
            self._take_rows(lines[:end])
            if end == len(lines):
                return
            lines, self.current = lines[end:], FdataLoads
        self._take_rows(lines)

    def _take_header(self, lines: bytes) -> bytes:
        if self.line == 1 and lines.startswith(b"boltedcollection\n"):
            self.bolted = True
            self.line += 1
            lines = lines.partition(b"\n")[2]
        header = re.match(rb"no_lbr((?: [^ \n]+)*)\n", lines)
        if header and self.main is FdataBranches:
            self.main = FdataSamples
            self.events = tuple(os.fsdecode(header[1]).split(" ")[1:])
            self.line += 1
            lines = lines[header.end() :]
        return lines

    def _take_rows(self, lines: bytes) -> None:
        assert self.current is not None
        rows = self._pattern.findall(lines)
        if len(rows) != lines.count(b"\n"):
            self._complain(lines)
        if rows:
            columns = zip(self.current.form, zip(*rows, strict=True), strict=True)
            try:
                made = [self._column(letter, texts) for letter, texts in columns]
            except OverflowError:
                self._complain(lines)
            self.parts.setdefault(self.current, []).append(made)
        self.line += len(rows)

    @property
    def _pattern(self) -> re.Pattern[bytes]:
        assert self.current is not None
        return _pattern(self.current.form, self.current.first_kind)

    def _column(self, letter: str, texts: Sequence[bytes]) -> Column:
        if letter == "k":
            assert self.current is not None
            kinds = np.array(texts, "S1").view(np.uint8) - np.uint8(ord("0"))
            return kinds - np.uint8(self.current.first_kind)
        if letter == "n":
            return np.array([self.names[text] for text in texts], np.int32)
        if letter == "x":
            return np.array([int(text, 16) for text in texts], np.uint64)
        return np.array([int(text) for text in texts], np.int64).astype(np.uint64)

    def _complain(self, lines: bytes) -> None:
        """Raise InputError for the first line that is wrong."""
        assert self.current is not None
        for number, line in enumerate(lines.split(b"\n"), self.line):
            row = self._pattern.match(line + b"\n")
            if row is None or _is_out_of_range(self.current.form, row.groups()):
                raise InputError(
                    f"expected {self.current.looks}, found {_shortened(line)}",
                    where=f"{self.where}:{number}",
                    cure="Make the file again with perf2bolt or lbr2pgo.",
                )

    def result(self) -> Fdata:
        main = self._table(self.main)
        loads = self._table(FdataLoads) if FdataLoads in self.parts else None
        return Fdata(
            names=self.names.unescaped(),
            branches=main if isinstance(main, FdataBranches) else None,
            samples=main if isinstance(main, FdataSamples) else None,
            loads=loads,
            bolted=self.bolted,
            events=self.events,
        )

    def _table(self, table: type[TableT]) -> TableT:
        dtypes = {"k": np.uint8, "n": np.int32, "x": np.uint64, "d": np.uint64}
        parts = self.parts.get(table) or [[np.zeros(0, dtypes[letter]) for letter in table.form]]
        return table(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _first_load(lines: bytes) -> int:
    """Where the first line of loads begins, or the end."""
    if lines[:1] in (b"3", b"4", b"5"):
        return 0
    found = [lines.find(start) for start in (b"\n3 ", b"\n4 ", b"\n5 ")]
    return min([i + 1 for i in found if i >= 0], default=len(lines))


@cache
def _pattern(form: str, first_kind: int) -> re.Pattern[bytes]:
    """One whole line of a table; fields may be parted, and the line ended, by several blanks."""
    parts = {
        "k": f"([{first_kind}-{first_kind + LOCAL_SYMBOL}])",
        "n": r"((?:[^ \n\\]++|\\.)++)",
        "x": "([0-9a-fA-F]{1,16})",
        "d": "([0-9]{1,19})",
    }
    line = "^" + " +".join(parts[letter] for letter in form) + " *\n"
    return re.compile(line.encode(), re.MULTILINE)


def _is_out_of_range(form: str, texts: Sequence[bytes]) -> bool:
    numbers = [int(t) for letter, t in zip(form, texts, strict=True) if letter == "d"]
    return max(numbers) > _LARGEST_COUNT


def _shortened(line: bytes) -> str:
    return repr(line[:120].decode("utf-8", "backslashreplace"))
