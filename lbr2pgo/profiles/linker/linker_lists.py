"""Lists that a linker reads, a line each, behind a comment that tells whose they are.

lld passes over lines that begin with ``#`` (LLVM: lld/Common/Args.cpp getLines).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.profiles.base import Reader
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import PathLike, write_pieces


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of list."""

    title: str
    """The comment that it begins with."""
    names: int
    """How many names of functions a line begins with."""


SYMBOLS = Kind("# functions in their order, hot ones first", 1)
CALLS = Kind("# caller, callee, calls", 2)


@dataclass(frozen=True, slots=True)
class LinkerList:
    """What a list holds."""

    kind: Kind
    lines: tuple[str, ...]

    def names(self, line: str) -> list[str]:
        """The functions that a line is about."""
        return line.split(" ")[: self.kind.names]


def write(kind: Kind, lines: Sequence[str], destination: PathLike | BinaryIO) -> None:
    """Write a list."""
    write_pieces(destination, (os.fsencode(line) + b"\n" for line in (kind.title, *lines)))


def reader(kind: Kind) -> Reader[LinkerList]:
    """How lists of a kind are recognised, read and shown."""
    title = os.fsencode(kind.title) + b"\n"

    def read(path: Path) -> LinkerList:
        try:
            text = os.fsdecode(path.read_bytes())
        except OSError as error:
            raise InputError(f"can't be read: {error.strerror}", where=str(path)) from error
        lines = tuple(line for line in text.split("\n") if line and not line.startswith("#"))
        return LinkerList(kind, lines)

    return Reader(lambda head: head.startswith(title), read, _lines, _of_function, _functions)


def _lines(found: LinkerList) -> Iterator[str]:
    return iter((found.kind.title, *found.lines))


def _of_function(found: LinkerList, function: str) -> Iterator[str] | None:
    lines = [line for line in found.lines if function in found.names(line)]
    return iter(lines) if lines else None


def _functions(found: LinkerList) -> set[str]:
    return {name for line in found.lines for name in found.names(line)}
