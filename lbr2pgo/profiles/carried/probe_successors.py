"""Which functions of one build are which in a later one: by name, and by the code at their probes.

Functions are told by their GUIDs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from lbr2pgo.profiles.carried.probe_code import ProbedCode, ProbedFunction
from lbr2pgo.profiles.carried.probe_map import ProbeMap, likeness, part_map, probe_map

_ALIKE = 0.6
"""Share of probes in common that makes a function of another name the same one."""
_FEW_PROBES = 4
"""Functions with fewer are often alike by chance."""
_SPLIT = 1 / 4
"""Share of a new function's probes that make it a part of an old one."""
_NEAREST = 8
"""Functions of another name that are compared, of those with most words in common."""
_COMMON = 50
"""Functions with a word that tells of one of them."""


class ProbeSuccessors:
    """What became of functions of an old build in a new one."""

    def __init__(self, old: ProbedCode, new: ProbedCode, checksums: Mapping[int, int]) -> None:
        """Of functions that a profile tells of, with the checksums that it has of them."""
        self._old, self._new = old, new
        known = [each for each in checksums if old.has(each)]
        gone = [each for each in known if not new.has(each)]
        changed = [
            each for each in known if new.has(each) and old.checksum(each) != new.checksum(each)
        ]
        old.read([*gone, *changed])
        new.read([*changed, *(self._added if gone or changed else ())])
        self._there = self._renamed(gone)
        self.renamed = {
            old.source_name(before): new.source_name(after)
            for before, after in self._there.items()
        }  # fmt: skip
        """What the source calls functions that it calls otherwise now."""

    def of(self, function: int) -> int | None:
        """The function in the new build; None if it is not there."""
        return function if self._new.has(function) else self._there.get(function)

    def probes(self, function: int) -> ProbeMap:
        """Where the probes of a function, which is there, are."""
        there = self.of(function)
        assert there is not None
        return probe_map(self._old.function(function), self._new.function(there), self.renamed)

    def split_off(self, function: int, probes: ProbeMap) -> Iterable[tuple[int, ProbeMap]]:
        """Functions that only the new build has, with probes that one has lost."""
        old = self._old.function(function)
        lost = [row for row in old.seen.tolist() if row not in probes.to]
        taken = set(self._there.values())
        for each in self._near(old, lost):
            new = self._new.function(each)
            part = part_map(old, new, self.renamed, lost)
            shared = len(part.sure)
            if each not in taken and shared >= max(_FEW_PROBES, _SPLIT * len(new.seen)):
                lost = [row for row in lost if row not in part.to]
                yield each, part

    @cached_property
    def _added(self) -> list[int]:
        return [each for each in self._new.numbers if not self._old.has(each)]

    def _renamed(self, gone: Iterable[int]) -> dict[int, int]:
        """Functions by the same name in the source, then those that are alike, each once."""
        by_name: dict[str, list[int]] = defaultdict(list)
        for each in self._added:
            by_name[self._new.source_name(each)].append(each)
        ranked = []
        for before in gone:
            old = self._old.function(before)
            namesakes = by_name.get(self._old.source_name(before), [])
            for after in namesakes or self._near(old, old.seen.tolist()):
                share = likeness(old, self._new.function(after))
                is_alike = share >= _ALIKE and len(old.seen) >= _FEW_PROBES
                if namesakes or is_alike:
                    ranked.append((-share, before, after))
        found: dict[int, int] = {}
        for _, before, after in sorted(ranked):
            if before not in found and after not in found.values():
                found[before] = after
        return found

    def _near(self, old: ProbedFunction, rows: Iterable[int]) -> list[int]:
        """Added functions with most of the words and callees of some probes of a function."""
        shared: Counter[int] = Counter()
        for word in {word for row in rows for word in old.told(row)}:
            there = self._added_with.get(word, ())
            if len(there) <= _COMMON:
                shared.update(there)
        return [each for each, _ in shared.most_common(_NEAREST)]

    @cached_property
    def _added_with(self) -> Mapping[str, list[int]]:
        """Added functions with each word or callee."""
        found: dict[str, list[int]] = defaultdict(list)
        for each in self._added:
            function = self._new.function(each)
            for word in {word for row in function.seen.tolist() for word in function.told(row)}:
                found[word].append(each)
        return found
