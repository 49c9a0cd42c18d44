"""Lists that a linker reads, a line each, behind a comment that tells whose they are.

lld passes over lines that begin with ``#`` (LLVM: lld/Common/Args.cpp getLines).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lbr2pgo.profiles.reader import Reader
from lbr2pgo.profiles.staleness import Staleness, staleness
from lbr2pgo.support.errors import readable
from lbr2pgo.support.output import PathLike, write_pieces
from lbr2pgo.support.whole_text import refuse_cut_off

if TYPE_CHECKING:
    from lbr2pgo.program.program import Program


@dataclass(frozen=True, slots=True)
class ListKind:
    """A kind of list."""

    title: str
    """The comment that it begins with."""
    names: int
    """How many names of functions a line begins with."""


_FEWEST = 8
"""Neighbours that tell whether the linker has followed an order."""
SYMBOLS = ListKind("# functions in their order, hot ones first", 1)
STARTUP = ListKind("# functions in the order in which they first ran", 1)
DATA = ListKind("# data in its order, most accessed first", 1)
CALLS = ListKind("# caller, callee, calls", 2)


@dataclass(frozen=True, slots=True)
class LinkerList:
    """What a list holds."""

    kind: ListKind
    lines: tuple[str, ...]

    def names(self, line: str) -> list[str]:
        """The functions that a line is about."""
        return line.split(" ")[: self.kind.names]


def write(kind: ListKind, lines: Sequence[str], destination: PathLike | BinaryIO) -> None:
    """Write a list."""
    write_pieces(destination, (os.fsencode(line) + b"\n" for line in (kind.title, *lines)))


class ListReader(Reader[LinkerList]):
    """Of lists of a kind. See `Reader`."""

    kind = "lists for a linker"

    def __init__(self, of: ListKind) -> None:
        self._of = of

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return head.startswith(os.fsencode(self._of.title) + b"\n")

    def read(self, path: Path) -> LinkerList:
        """See `Reader`."""
        with readable(path):
            text = os.fsdecode(path.read_bytes())
        refuse_cut_off(path)
        lines = tuple(line for line in text.split("\n") if line and not line.startswith("#"))
        return LinkerList(self._of, lines)

    def lines(self, content: LinkerList) -> Iterator[str]:
        """See `Reader`."""
        return iter((content.kind.title, *content.lines))

    def of_function(self, content: LinkerList, function: str) -> Iterator[str] | None:
        """See `Reader`."""
        lines = [line for line in content.lines if function in content.names(line)]
        return iter(lines) if lines else None

    def functions(self, content: LinkerList) -> set[str]:
        """See `Reader`."""
        return {name for line in content.lines for name in content.names(line)}

    def staleness(self, content: LinkerList, program: Program) -> Staleness | None:
        """Each line, by whether all functions that it is about are there."""
        if not program.symbols.are_complete:
            return None
        missing: Counter[str] = Counter()
        for line in content.lines:
            gone = [n for n in content.names(line) if program.symbols.by_name(n) is None]
            missing.update(gone[:1])
        found = staleness(len(content.lines), len(content.lines) - missing.total(), missing)
        is_order = content.kind.names == 1
        return replace(found, followed=_followed(content.lines, program)) if is_order else found


def _followed(names: Sequence[str], program: Program) -> float | None:
    rows = [program.symbols.by_name(name) for name in names]
    places = program.symbols.start[[row for row in rows if row is not None]]
    apart = places[1:] != places[:-1]  # other names of one function
    if apart.sum() < _FEWEST:
        return None
    return float((places[1:] > places[:-1])[apart].mean())


ORDERS, STARTUPS, DATA_ORDERS, CALL_LISTS = map(ListReader, (SYMBOLS, STARTUP, DATA, CALLS))
