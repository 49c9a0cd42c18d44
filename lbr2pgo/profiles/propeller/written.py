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
from lbr2pgo.profiles.weights import ProfileWeights
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError, readable
from lbr2pgo.support.whole_text import refuse_cut_off

_HEAD = re.compile(rb"(?:v1\n)|(?:#[^\n]*\n)*![^!\s]")
_TOTAL = re.compile(r"# ([0-9]{1,9}) blocks")
_CLONE = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,19})?")


@dataclass(frozen=True, slots=True)
class Laid:
    """What a file of either version says of one function."""

    names: tuple[str, ...]
    blocks: tuple[int, ...]
    lines: tuple[str, ...]
    """As they stand there."""
    total: int | None = None
    """How many blocks the function had, if that is said."""


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
    found = Clusters(tuple(_functions(text.split("\n"), str(path))))
    refuse_cut_off(path)
    return found


def _functions(lines: list[str], where: str) -> Iterator[Laid]:
    is_newer = lines[0] == "v1"
    names: list[str] = []
    blocks: list[int] = []
    own: list[str] = []
    total: int | None = None
    for number, line in enumerate(lines, 1):
        place = f"{where}:{number}"
        kind, rest = _kind(line, place, is_newer=is_newer)
        if kind in "mf" and names:
            yield Laid(tuple(names), tuple(blocks), tuple(own), total)
            names, blocks, own, total = [], [], [], None
        if kind == "f":
            names = rest
        elif kind == "c":
            blocks += _numbers(rest, place)
        elif kind == "#":
            total = int(rest[0])
        if kind not in " #":
            own.append(line)
    if names:
        yield Laid(tuple(names), tuple(blocks), tuple(own), total)


def _kind(line: str, where: str, *, is_newer: bool) -> tuple[str, list[str]]:
    """What a line is in version 1's letters, and its words; `#` is how many blocks there were."""
    if said := _TOTAL.fullmatch(line):
        return "#", [said[1]]
    if not line or line[0] in "#@" or line == "v1":
        return " ", []
    if is_newer and line[0] in "mfcpghti":
        return line[0], line[1:].split()
    if not is_newer and line.startswith("!!"):
        return "c", line[2:].split()
    names = line[1:].split(" ")[0].split("/")
    if is_newer or line[0] != "!" or not names[0]:
        _refuse("no line of Propeller's clusters", where)
    return "f", names


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

    Where the file says how many blocks a function had, and it has others now, its numbers mean
    other blocks, if any. Raises InputError where the program has no map.
    """
    blocks = open_block_map(program.image)
    numbers: list[set[int]] = [set() for _ in blocks.entry]
    for function, block in zip(blocks.function.tolist(), blocks.identity.tolist(), strict=True):
        numbers[function].add(block)
    names = program.symbols.functions_at(blocks.entry.tolist())
    known: dict[str, list[set[int]]] = {}
    for entry, own in zip(blocks.entry.tolist(), numbers, strict=True):
        for name in names.get(entry, ()):
            known.setdefault(name, []).append(own)
    total = placed = 0
    missing: dict[str, int] = {}
    for each in clusters:
        there = [own for name in each.names for own in known.get(name, ())]
        alike = [own for own in there if each.total in {None, len(own)}]
        total += len(each.blocks)
        placed += max((len(own.intersection(each.blocks)) for own in alike), default=0)
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

    def weights(self, content: Clusters) -> ProfileWeights:
        """Of functions, how many blocks are laid out."""
        blocks = {each.names[0]: len(each.blocks) for each in content.functions}
        return ProfileWeights(self.kind, blocks, {})

    def staleness(self, content: Clusters, program: Program) -> Staleness:
        """See `Reader`."""
        return of_clusters(content.functions, program)


CLUSTERS = ClustersReader()
