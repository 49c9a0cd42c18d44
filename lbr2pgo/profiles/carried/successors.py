"""Which functions of one source tree are which in another: by name, place, and content."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from lbr2pgo.profiles.carried.outline import Definition
from lbr2pgo.profiles.carried.source_tree import SourceTree

_ALIKE = 0.6
"""Share of lines in common that makes a function of another name the same one."""
_SPLIT = 1 / 3
"""Share of a new function's lines that make it a part of an old one."""
_FEW_LINES = 4
"""Shorter functions are often alike by chance."""
_LONG_LINE = 7
"""Characters of a line that is seldom where it is by chance."""
_MOST_WITH_A_LINE = 20
"""Functions with a line that tells of one of them."""


class Successors:
    """What became of the functions of an old tree in a new one."""

    def __init__(self, old: SourceTree, new: SourceTree) -> None:
        self.old, self.new = old, new
        self._found: dict[Definition, Definition | None] = {}

    def of(self, function: Definition) -> Definition | None:
        """The function in the new tree; None if it is gone."""
        if function not in self._found:
            self._found[function] = self._find(function)
        return self._found[function]

    def _find(self, function: Definition) -> Definition | None:
        if self.new.files.get(function.file) == self.old.files[function.file]:
            return function
        there = self.new.by_name.get(function.name)
        return max(there, key=_nearness(function)) if there else self._renamed(function)

    def _renamed(self, function: Definition) -> Definition | None:
        """The function that only the new tree has, with most of the lines."""
        if len(function.lines) < _FEW_LINES:
            return None
        ranked = [(_alike(function, self._added[row]), -row) for row in self._near(function.lines)]
        share, row = max(ranked, default=(0.0, 0))
        return self._added[-row] if share >= _ALIKE else None

    def split_off(self, function: Definition, lost: Iterable[int]) -> Iterator[Definition]:
        """Functions that only the new tree has, with lines that one has lost (from its start)."""
        lines = {function.lines[row] for row in lost}
        for row in sorted(self._near(lines)):
            each = self._added[row]
            own = [line for line in each.lines if len(line) >= _LONG_LINE]
            shared = sum(line in lines for line in own)
            if each.file == function.file and shared >= max(_FEW_LINES, _SPLIT * len(own)):
                yield each

    @cached_property
    def _added(self) -> list[Definition]:
        names = self.new.by_name.keys() - self.old.by_name.keys()
        return [each for name in sorted(names) for each in self.new.by_name[name]]

    def _near(self, lines: Iterable[str]) -> set[int]:
        """Rows of added functions that have one of these lines."""
        return {row for line in lines for row in self._added_with.get(line, ())}

    @cached_property
    def _added_with(self) -> Mapping[str, list[int]]:
        """Of each line that few of the added functions have, which ones."""
        found: dict[str, list[int]] = defaultdict(list)
        for row, each in enumerate(self._added):
            for line in set(each.lines):
                found[line].append(row)
        return {line: rows for line, rows in found.items() if len(rows) <= _MOST_WITH_A_LINE}


def _alike(one: Definition, other: Definition) -> float:
    """Share of lines that two functions have in common, from 0 to 1."""
    shared = (Counter(one.lines) & Counter(other.lines)).total()
    return shared / max(len(one.lines), len(other.lines))


def _nearness(function: Definition) -> Callable[[Definition], tuple[bool, bool, bool, float]]:
    def nearness(other: Definition) -> tuple[bool, bool, bool, float]:
        return (
            other.lines == function.lines,
            other.scope == function.scope,
            other.file == function.file,
            _alike(function, other),
        )

    return nearness
