"""CSV as tools of this field write it: sections of rows, header names in any order and case."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from lbr2pgo.support import headway
from lbr2pgo.support.errors import InputError, readable

SIZE_LIMIT = 1 << 28
"""Bytes; reports are a few megabytes."""

_ROWS_TOLD = 10_000
"""Rows after which it is told how far a file was read."""
_LARGEST = 1e15
"""So large a number of samples is a mistake; sums of such ones stay exact."""
_MARKS = re.compile(r"\(.*?\)|[:_\s]+")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """The cells of one line, without blanks around them."""

    line: int
    cells: tuple[str, ...]

    @property
    def filled(self) -> tuple[str, ...]:
        """Cells that hold something."""
        return tuple(cell for cell in self.cells if cell)


def read_rows(path: Path) -> Iterator[CsvRow]:
    """Rows of a file, blank lines too; InputError where it can't be read or is no CSV."""
    with readable(path):
        size = path.stat().st_size
        if size > SIZE_LIMIT:
            raise InputError(
                f"is larger than any report ({SIZE_LIMIT >> 20} MiB)",
                where=str(path),
                cure="Report on fewer processes.",
            )
        with path.open("rb") as file:
            stream = TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            for number, row in enumerate(_rows(stream, str(path))):
                if number % _ROWS_TOLD == 0:
                    headway.tell(file.tell() / size)
                yield row


def rows_of(text: str) -> Iterator[CsvRow]:
    """Rows of the head of a file, for sniffing."""
    return _rows(text.splitlines(keepends=True), "")


def _rows(lines: Iterator[str] | Sequence[str] | object, path: str) -> Iterator[CsvRow]:
    reader = csv.reader(lines, skipinitialspace=True)  # type: ignore[arg-type]
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"is no valid CSV: {error}",
                where=f"{path}:{reader.line_num}",
                cure="Save the table as comma-separated values.",
            ) from error
        yield CsvRow(reader.line_num, tuple(cell.strip() for cell in cells))


def normal(name: str) -> str:
    """A header name or key without case, unit and punctuation.

    >>> normal("MISPREDICT (%)"), normal("Source_Line:"), normal(" source  LINE ")
    ('mispredict', 'source line', 'source line')
    """
    return _MARKS.sub(" ", name.lower()).strip()


def places_of(header: CsvRow, names: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Which cell of a header holds each wanted column; `names` lists what it may be called.

    Names are compared as they stand first, so that `MISPREDICT (%)` differs from `MISPREDICT`.
    """
    exact = {" ".join(cell.lower().rstrip(": ").split()): i for i, cell in enumerate(header.cells)}
    loose: dict[str, int] = {}
    for i, cell in enumerate(header.cells):
        loose.setdefault(normal(cell), i)
    found = {}
    for wanted, calls in names.items():
        at = next(
            (known[call] for known in (exact, loose) for call in calls if call in known), None
        )
        if at is not None:
            found[wanted] = at
    return found


def number_of(text: str) -> float | None:
    """A number as people write it, with thousands separators or a unit of per cent; else None.

    >>> number_of("1,234"), number_of("12.5 %"), number_of("n/a"), number_of("inf")
    (1234.0, 12.5, None, None)
    >>> number_of("1e99") is None
    True
    """
    plain = text.strip().rstrip("%").replace(",", "").strip()
    if not re.fullmatch(r"\d{1,18}(?:\.\d*)?(?:[eE][+-]?\d{1,2})?", plain):
        return None
    number = float(plain)
    return number if number <= _LARGEST else None
