"""Which functions of one build are which in a later one: by name, and by what they do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property

from lbr2pgo.profiles.carried.changed_code import ChangedCode
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.blocks.function_code import ProgramCode, plain_name
from lbr2pgo.program.program import Program

_ALIKE = 0.6
"""Share of instructions in common, up to the registers, that makes a function of another name the
same one."""
_FEW_WORDS = 12
"""Functions with fewer instructions are often alike by chance."""
_FEW_WITH_A_WORD = 20
"""Functions with an instruction that tells of one of them."""
_SIZES = 2
"""How many times as large as the other one a function of another name may be."""


class CodeSuccessors:
    """What became of functions of an old program in a new one; numbers are those of `discover`."""

    def __init__(self, old: Program, new: Program, names: Iterable[str], *, bolted: bool) -> None:
        """Of functions by the names that fdata has for them, `bolted` in that of BOLT's output."""
        self.old, self.new = (discover(each.image, each.symbols) for each in (old, new))
        self.old_names, self.new_names = (
            each.names_with_files if bolted else each.names for each in (self.old, self.new)
        )
        number = {name: i for i, name in enumerate(self.old_names)}
        self.number: dict[str, int] = {name: number[name] for name in names if name in number}
        wanted = [i for i in self.number.values() if not self.old.is_pseudo[i]]
        self._old_code = ProgramCode(old, self.old, wanted)
        self._there = self._by_name(wanted)
        gone = [i for i in wanted if i not in self._there]
        added = self._unclaimed(gone) if gone else []
        named = [j for j in self._there.values() if not self.new.is_pseudo[j]]
        self._new_code = ProgramCode(new, self.new, [*named, *added])
        self._there.update(self._renamed(gone, added))
        self._there.update(self._by_name(i for i in self.number.values() if self.old.is_pseudo[i]))
        self.changed = cache(self._changed)

    def of(self, function: int) -> int | None:
        """The function in the new program; None if it is gone."""
        return self._there.get(function)

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Plain names of functions that have another one now."""
        pairs = (
            (plain_name(self.old_names[i]), plain_name(self.new_names[j]))
            for i, j in self._there.items()
        )
        return {before: after for before, after in pairs if before != after}

    def _changed(self, function: int) -> ChangedCode | None:
        """Where control flows otherwise in a function that is not gone; None if it does not."""
        there = self._there[function]
        if self.old.is_pseudo[function] or self.new.is_pseudo[there]:
            return None
        if self._old_code.shape(function) == self._new_code.shape(there):
            return None
        old, new = self._old_code.function(function), self._new_code.function(there)
        return ChangedCode(old, new, self.renamed)

    def _by_name(self, functions: Iterable[int]) -> dict[int, int]:
        """Those that have their name still, in their file, or are the only ones of it."""
        there = {name: j for j, name in enumerate(self.new.names_with_files)}
        before, after = (_only_of(each) for each in (self.old_names, self.new_names))
        found: dict[int, int] = {}
        for i in functions:
            plain = plain_name(self.old_names[i])
            only = after.get(plain) if plain in before else None
            to = there.get(self.old.names_with_files[i], only)
            if to is not None:
                found[i] = to
        return found

    def _unclaimed(self, gone: Sequence[int]) -> list[int]:
        """Functions that others may have become: of a new name, or one that several have."""
        had = {plain_name(name) for name in self.old_names}
        had -= {plain_name(self.old_names[i]) for i in gone}
        taken = set(self._there.values())
        return [
            j
            for j, name in enumerate(self.new_names)
            if j not in taken and self.new.symbol[j] >= 0 and plain_name(name) not in had
        ]

    def _renamed(self, gone: Sequence[int], added: Sequence[int]) -> dict[int, int]:
        """Functions that do nearly the same under another name, each with the likest."""
        theirs = {j: self._new_code.function(j).words for j in added}
        having = defaultdict[str, list[int]](list)
        for j, words in theirs.items():
            for word in words:
                having[word].append(j)
        ranked: list[tuple[float, int, int]] = []
        for i in gone:
            mine = self._old_code.function(i).words
            rare = (having[word] for word in mine if len(having.get(word, ())) <= _FEW_WITH_A_WORD)
            near = {j for each in rare for j in each if _of_one_size(self.old, i, self.new, j)}
            shares = ((_likeness(mine, theirs[j]), j) for j in near)
            ranked += [(-share, i, j) for share, j in shares if share >= _ALIKE]
        found: dict[int, int] = {}
        taken: set[int] = set()
        for _, i, j in sorted(ranked):
            if i not in found and j not in taken:
                found[i] = j
                taken.add(j)
        return found


def _only_of(names: Sequence[str]) -> dict[str, int]:
    """Numbers of the functions that no other one shares its plain name with."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        found[plain_name(name)].append(number)
    return {name: numbers[0] for name, numbers in found.items() if len(numbers) == 1}


def _of_one_size(old: BinaryFunctions, i: int, new: BinaryFunctions, j: int) -> bool:
    sizes = sorted((int(old.size[i]), int(new.size[j])))
    return sizes[1] <= _SIZES * sizes[0]


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total >= 2 * _FEW_WORDS else 0.0
