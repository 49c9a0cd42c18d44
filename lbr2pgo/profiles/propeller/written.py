"""Written clusters of blocks: recognised, read, shown and asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lbr2pgo.profiles.reader import Reader
from lbr2pgo.profiles.staleness import Staleness, staleness
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError, readable

_HEAD = re.compile(rb"(?:v1\n)|(?:#[^\n]*\n)*![^!\s]")
_CLONE = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,19})?")


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
    with readable(path):
        text = os.fsdecode(path.read_bytes())
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


def of_clusters(clusters: Iterable[Laid], program: Program) -> Staleness:
    """Of Propeller's clusters: blocks that the map of a program lacks, each counting once.

    Raises InputError where the program has no map.
    """
    blocks = open_block_map(program.image)
    known: dict[str, set[int]] = {}
    names = program.symbols.functions_at(blocks.entry.tolist())
    for function, block in zip(blocks.function.tolist(), blocks.identity.tolist(), strict=True):
        for name in names.get(int(blocks.entry[function]), ()):
            known.setdefault(name, set()).add(block)
    total = placed = 0
    missing: dict[str, int] = {}
    for each in clusters:
        there = [known[name] for name in each.names if name in known]
        total += len(each.blocks)
        placed += max((len(own.intersection(each.blocks)) for own in there), default=0)
        if not there:
            missing[each.names[0]] = missing.get(each.names[0], 0) + len(each.blocks)
    return staleness(total, placed, missing)


class ClustersReader(Reader[Clusters]):
    """See `Reader`."""

    kind = "Propeller clusters"

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return is_clusters(head)

    def read(self, path: Path) -> Clusters:
        """See `Reader`."""
        return read(path)

    def lines(self, content: Clusters) -> Iterator[str]:
        """See `Reader`."""
        return (line for each in content.functions for line in each.lines)

    def of_function(self, content: Clusters, function: str) -> Iterator[str] | None:
        """See `Reader`."""
        held = content.functions
        lines = [line for each in held if function in each.names for line in each.lines]
        return iter(lines) if lines else None

    def functions(self, content: Clusters) -> set[str]:
        """See `Reader`."""
        return {name for each in content.functions for name in each.names}

    def staleness(self, content: Clusters, program: Program) -> Staleness:
        """See `Reader`."""
        return of_clusters(content.functions, program)


CLUSTERS = ClustersReader()
