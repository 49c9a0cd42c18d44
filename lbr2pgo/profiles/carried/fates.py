"""What became of each function that a profile names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import ClassVar

from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.line_map import LineMap, called, line_map, neighbours
from lbr2pgo.profiles.carried.outline import Definition
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_names import (
    Location,
    Name,
    original_name,
)
from lbr2pgo.profiles.llvm.sample_profile import LARGEST_LINE, FunctionSamples, SampleProfile
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.support.dataclass import dataclass

_LAST_PART = re.compile(r"(operator\W+?|operator [^:]+|~?[\w$]+)(?:<.*>)?(?:::h[0-9a-f]{16})?\Z")
_LAMBDA = re.compile(
    r"""(?:::(?:\$_\d+|\{lambda[^{}]*\}|'lambda\d*')::operator\(\)(?:<.*>)?
    |::_\$u7b\$\$u7b\$closure\$u7d\$\$u7d\$)+(?:::h[0-9a-f]{16})?\Z""",
    re.VERBOSE,
)
"""What a lambda, or a closure in Rust, is called behind the function that it stands in."""


@cache
def source_name(name: Name) -> str:
    """What the source calls a function, without what it is qualified by; "" where it has no name.

    >>> source_name("_ZN5shape4areaEv"), source_name("sqlite3VdbeExec"), source_name("run.__uniq.1")
    ('area', 'sqlite3VdbeExec', 'run')
    """
    own = original_name(without_unique_suffix(str(name)))
    match = _LAST_PART.search(short_name(own))
    return "" if match is None else match[1].replace(" ", "")


def name_around(name: Name) -> str:
    """The same of the function that a lambda stands in; "" for what is no lambda.

    >>> name_around("_ZZZ4mainENKUliE_clEiENKUlvE_clEv"), name_around("_ZN5shape4areaEv")
    ('main', '')
    >>> name_around("_ZN3foo3bar28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE")
    'bar'
    """
    outer, *inner = _LAMBDA.split(short_name(without_unique_suffix(str(name))))
    match = _LAST_PART.search(outer) if inner else None
    return "" if match is None else match[1]


def renamed(name: Name, old: str, new: str) -> Name:
    """A linkage name after the last part of what it names became another.

    >>> renamed("_ZN5shape4areaEv", "area", "extent"), renamed("run", "run", "walk")
    ('_ZN5shape6extentEv', 'walk')
    """
    if old == new or isinstance(name, int):
        return name
    if not name.startswith("_Z"):
        return name.replace(old, new, 1)
    before, found, behind = name.rpartition(f"{len(old)}{old}")
    return f"{before}{len(new)}{new}{behind}" if found else name


@dataclass(slots=True)
class Mentions:
    """What a profile says of a function, wherever it was inlined."""

    lines: set[int] = field(default_factory=set)
    """With a count."""
    calls: set[tuple[int, str]] = field(default_factory=set)
    """Lines, and what they call, by the source's names."""

    def fit(self, function: Definition) -> int:
        """How many of these lines have code in a function, and how many of the calls stand there.

        Lines outside the function may be of a file that is included there.
        """
        lines = dict(enumerate(function.lines))
        return sum(bool(lines.get(line)) for line in self.lines) + sum(
            name in lines.get(line, "") for line, name in self.calls
        )


def mentions(profile: SampleProfile) -> Mapping[Name, Mentions]:
    """Of each function of a profile."""
    found: dict[Name, Mentions] = defaultdict(Mentions)
    for function in profile.functions.values():
        _mention(function, found)
    return found


def _mention(function: FunctionSamples, found: dict[Name, Mentions]) -> None:
    own = found[function.name]
    own.lines.update(line for line, _ in function.body)
    for (line, _), targets in function.call_targets.items():
        own.calls.update((line, source_name(target)) for target in targets)
    for (line, _), callee in function.inlined():
        own.calls.add((line, source_name(callee.name)))
        _mention(callee, found)


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a function."""

    name: Name
    """What it is called now."""
    old: Definition | None = None
    """None where the old tree lacks its source: it is taken to be as it was."""
    new: Definition | None = None
    """None if it is gone."""
    lines: LineMap | None = None
    """None where it did not change."""
    filled: Mapping[int, int] = field(default_factory=dict)
    """Lines without counts, and for each one of the same block that has some."""
    parts: tuple[Fate, ...] = ()
    """Functions that were split off it."""
    is_part: bool = False
    """Whether it is one of these: it has lines alone."""
    around: tuple[Fate, ...] = ()
    """Of a lambda, functions one of which it stands in."""
    checksum: ClassVar[int] = 0

    @property
    def is_gone(self) -> bool:
        """Whether the new tree lacks it."""
        return self.old is not None and self.new is None

    def places(self, location: Location) -> tuple[Location, ...]:
        """Where a location is now; nowhere if it is gone.

        Code can have lines outside its function: of a file that is included there, or 0 for code
        that belongs to no line. Their offsets follow from where the function starts.
        """
        line, discriminator = location
        if self.old is None or self.new is None:
            return () if self.is_gone else (self._by_start(location),)
        if line >= len(self.old.lines):
            if self.is_part:
                return ()
            return (((line + self.old.start - self.new.start) & LARGEST_LINE, discriminator),)
        there = (line,) if self.lines is None else self.lines.to(line)
        return tuple((to, discriminator) for to in there)

    def call_place(self, location: Location, callee: Name) -> Location | None:
        """Where a call is now: of several lines, on that which names the callee."""
        there = self.places(location)
        if len(there) < 2 or self.new is None:
            return there[0] if there else None
        name = source_name(callee)
        naming = [place for place in there if name in called(self.new.lines[place[0]])]
        return (naming or there)[0]

    def fill(self, body: dict[Location, int]) -> int:
        """Give lines without counts that of a line of their block; the total stays."""
        by_line: dict[int, int] = {}
        for (line, _), count in body.items():
            by_line[line] = max(by_line.get(line, 0), count)
        for line, neighbour in self.filled.items():
            if neighbour in by_line:
                body.setdefault((line, 0), by_line[neighbour])
        return 0

    def _line(self, line: int) -> int | None:
        """Where a line of the old file is in the new one; None if it is none of this function."""
        if self.old is None or self.new is None or not self.old.start <= line <= self.old.end:
            return None
        there = self.places((line - self.old.start, 0))
        return self.new.start + there[0][0] if there else None

    def _by_start(self, location: Location) -> Location:
        """Where code without a line is now: by its offset, which tells where a lambda starts."""
        line, discriminator = location
        starts = (each._line(-line & LARGEST_LINE) for each in self.around)
        start = next((each for each in starts if each is not None), None)
        return location if start is None else (-start & LARGEST_LINE, discriminator)

    def way(self, location: Location) -> Way:
        """How sure it is that a location is the same one still."""
        line, _ = location
        if self.old is None:
            return Way.UNKNOWN
        if self.lines is None:
            return Way.LOST if self.is_gone else Way.SAME
        if line in self.lines.kept or line >= len(self.old.lines):
            return Way.PLACE
        is_there = any(each.places(location) for each in (self, *self.parts))
        return Way.CHANGED if is_there else Way.LOST


class Fates:
    """Finds out what became of functions, each once."""

    def __init__(
        self, mentions: Mapping[Name, Mentions], successors: Successors, account: Account
    ) -> None:
        self._mentions, self._successors, self.account = mentions, successors, account
        self._found: dict[Name, Fate] = {}
        self._around: dict[str, tuple[Fate, ...]] = {}

    def of(self, name: Name) -> Fate:
        """What became of a function; what is to be said of it goes into the account."""
        if name not in self._found:
            self._found[name] = fate = self._find(name)
            _note(name, fate, self.account)
        return self._found[name]

    def _find(self, name: Name) -> Fate:
        own = self._mentions.get(name, Mentions())
        outer = name_around(name)
        if outer:
            return Fate(name, around=self._named(outer))
        there = self._successors.old.by_name.get(source_name(name), ())
        old = max(there, key=own.fit, default=None)
        new = None if old is None else self._successors.of(old)
        if old is None or new is None:
            return Fate(name, old)
        new_name = renamed(name, old.name, new.name)
        if old.lines == new.lines:
            return Fate(new_name, old, new)
        lines = line_map(old.lines, new.lines)
        known = {to for line in own.lines for to in lines.to(line)}
        lost = [line for line in range(len(old.lines)) if not lines.to(line)]
        parts = tuple(
            Fate(
                renamed(name, old.name, part.name),
                old,
                part,
                line_map(old.lines, part.lines).of(lost),
                is_part=True,
            )
            for part in self._successors.split_off(old, lost)
        )
        return Fate(new_name, old, new, lines, neighbours(new.lines, known), parts)

    def _named(self, name: str) -> tuple[Fate, ...]:
        """All functions that the source calls so."""
        if name not in self._around:
            there = self._successors.old.by_name.get(name, ())
            self._around[name] = tuple(map(self._moved, there))
        return self._around[name]

    def _moved(self, old: Definition) -> Fate:
        new = self._successors.of(old)
        if new is None or old.lines == new.lines:
            return Fate(old.name, old, new)
        return Fate(old.name, old, new, line_map(old.lines, new.lines))


def _note(name: Name, fate: Fate, account: Account) -> None:
    if fate.is_gone:
        account.gone.add(str(name))
    if fate.name != name:
        account.renamed[str(name)] = str(fate.name)
    if fate.parts:
        account.split[str(name)] = tuple(str(part.name) for part in fate.parts)
