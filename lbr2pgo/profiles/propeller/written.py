"""Written clusters of blocks: recognised, read and shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lbr2pgo.profiles.base import Reader
from lbr2pgo.support.errors import InputError

_HEAD = re.compile(rb"(?:v1\n)|(?:#[^\n]*\n)*![^!\s]")
_CLONE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Laid:
    """What a file of either version says of one function."""

    names: tuple[str, ...]
    blocks: tuple[int, ...]
    lines: tuple[str, ...]
    """As they stand there."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """What such a file holds."""

    functions: tuple[Laid, ...]


def is_clusters(head: bytes) -> bool:
    """Whether a file that begins with these bytes holds clusters."""
    return _HEAD.match(head) is not None


def read(path: Path) -> Clusters:
    """Read clusters; raises InputError, with the line, where they are broken."""
    try:
        text = os.fsdecode(path.read_bytes())
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from error
    return Clusters(tuple(_functions(text.split("\n"), str(path))))


def _functions(lines: list[str], where: str) -> Iterator[Laid]:
    is_newer = lines[0] == "v1"
    names: list[str] = []
    blocks: list[int] = []
    own: list[str] = []
    for number, line in enumerate(lines, 1):
        kind, rest = _kind(line, is_newer=is_newer)
        if kind in "mf" and names:
            yield Laid(tuple(names), tuple(blocks), tuple(own))
            names, blocks, own = [], [], []
        if kind == "f":
            names = rest
        elif kind == "c":
            blocks += _numbers(rest, f"{where}:{number}")
        elif kind == "?":
            _refuse("no line of Propeller's clusters", f"{where}:{number}")
        if kind != " ":
            own.append(line)
    if names:
        yield Laid(tuple(names), tuple(blocks), tuple(own))


def _kind(line: str, *, is_newer: bool) -> tuple[str, list[str]]:
    """What a line is in version 1's letters, `?` if it is nothing known, and its words."""
    if not line or line[0] in "#@" or line == "v1":
        return " ", []
    if is_newer:
        words = line[1:].split()
        return (line[0] if line[0] in "mfcpghti" else "?"), words
    if line.startswith("!!"):
        return "c", line[2:].split()
    names = line[1:].split(" ")[0].split("/")
    return ("f", names) if line[0] == "!" and names[0] else ("?", [])


def _numbers(words: list[str], where: str) -> Iterator[int]:
    for word in words:
        if not _CLONE.fullmatch(word):
            _refuse(f"{word} is no number of a block", where)
        if "." not in word:
            yield int(word)


def _refuse(what: str, where: str) -> NoReturn:
    cure = "Write it again: lbr2pgo convert --propeller-cc."
    raise InputError(what, where=where, cure=cure)


def _lines(found: Clusters) -> Iterator[str]:
    return (line for each in found.functions for line in each.lines)


def _of_function(found: Clusters, function: str) -> Iterator[str] | None:
    lines = [line for each in found.functions if function in each.names for line in each.lines]
    return iter(lines) if lines else None


def _names(found: Clusters) -> set[str]:
    return {name for each in found.functions for name in each.names}


READERS = (Reader(is_clusters, read, _lines, _of_function, _names),)
