"""Which blocks of a function are which in its later form.

Blocks that read alike and are few are found first, then those whose neighbours in the flow were
found, from strict to loose: a block is likest to the one with most of its instructions, calls and
neighbours. Histograms of instructions tell more blocks apart than hashes of them do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import Match, SequenceMatcher

from lbr2pgo.program.blocks.function_code import BlockCode, FunctionCode

_MANY_WORDS = 8
"""Shorter blocks are often alike by chance, up to the registers."""
_LIKELY = 0.5
"""What two blocks must have in common at least."""
_LEVELS = (1.3, 1.0, 0.75, _LIKELY)
"""How much must speak for a pair, from sure to likely."""
_ALONE = 0.9
"""How much must speak for one whose neighbours tell nothing."""
_NEIGHBOURS, _BESIDE = 0.5, 0.1
"""What it speaks for a pair that all neighbours are pairs, as much as that all entries of tables
lead there, and that the block before it is one."""
_MOST_ALIKE = 8
"""Blocks of one function with the same instructions, of which all are tried."""

_Words = tuple[str, ...]


def block_match(old: FunctionCode, new: FunctionCode) -> Mapping[int, int]:
    """Numbers of blocks, and of those that they have become; some have become nothing."""
    matching = _Matching(old, new)
    if old.blocks and new.blocks:
        matching.pair(0, 0)
        matching.pair_cases()
        matching.pair_unique(lambda block: block.words if len(block.words) >= _MANY_WORDS else ())
        matching.pair_unique(lambda block: tuple(call.callee for call in block.calls))
        matching.grow()
        while matching.improve(_ALONE):
            matching.grow()
    return matching.to


class _Matching:
    """Pairs of blocks that were found so far."""

    def __init__(self, old: FunctionCode, new: FunctionCode) -> None:
        self.old, self.new = old, new
        self.to: dict[int, int] = {}
        self.of: dict[int, int] = {}
        self._alike = _numbers_of(block.loose for block in new.blocks)
        self._cases = _cases(old, new)

    def pair(self, before: int, after: int) -> None:
        """Take two blocks for the same."""
        self.to[before], self.of[after] = after, before

    def pair_cases(self) -> None:
        """Pair all blocks that every table leads to by the same entries."""
        for before, there in self._cases.items():
            if len(there) == 1:
                self._pair_likely(before, next(iter(there)))

    def pair_unique(self, key: Callable[[BlockCode], _Words]) -> None:
        """Pair all blocks that no other of their functions has the key of."""
        mine, theirs = (_numbers_of(map(key, code.blocks)) for code in (self.old, self.new))
        for words, numbers in mine.items():
            others = theirs.get(words, [])
            if any(words) and len(numbers) == len(others) == 1:
                self._pair_likely(numbers[0], others[0])

    def grow(self) -> None:
        """Pair blocks beside those that are paired, the surest first."""
        for least in _LEVELS:
            while self.improve(least, alone=False):
                pass

    def improve(self, least: float, *, alone: bool = True) -> int:
        """Pair all that are each other's likest; returns how many more there are."""
        best: dict[int, tuple[float, int]] = {}
        wanted: dict[int, tuple[float, int]] = {}
        for before in range(len(self.old.blocks)):
            if before in self.to:
                continue
            for after in self._candidates(before):
                around = self._around(before, after)
                score = self.old.blocks[before].likeness(self.new.blocks[after]) + around
                if score >= least and (around or alone):
                    best[before] = max(best.get(before, (0.0, 0)), (score, -after))
                    wanted[after] = max(wanted.get(after, (0.0, 0)), (score, -before))
        count = len(self.to)
        for before, (_, after) in best.items():
            if wanted[-after][1] == -before:
                self._pair_likely(before, -after)
        return len(self.to) - count

    def _around(self, before: int, after: int) -> float:
        """How much speaks for a pair beside what the blocks have in common."""
        one, other = self.old.blocks[before], self.new.blocks[after]
        agreed = self._agreement(one.successors, other.successors)
        agreed += self._agreement(self.old.predecessors[before], self.new.predecessors[after])
        size = max(_degree(self.old, before), _degree(self.new, after))
        cases: Counter[int] = self._cases.get(before, Counter())
        as_case = cases[after] / (cases.total() or 1)
        beside = _BESIDE if self.to.get(before - 1) == after - 1 else 0.0
        return _NEIGHBOURS * (agreed / (size or 1) + as_case) + beside

    def _agreement(self, before: Sequence[int], after: Sequence[int]) -> int:
        return len({self.to[each] for each in before if each in self.to}.intersection(after))

    def _pair_likely(self, before: int, after: int) -> None:
        is_new = before not in self.to and after not in self.of
        if is_new and self.old.blocks[before].likeness(self.new.blocks[after]) >= _LIKELY:
            self.pair(before, after)

    def _candidates(self, before: int) -> set[int]:
        """Blocks that one may have become: neighbours of its neighbours, or with its words."""
        alike = self._alike.get(self.old.blocks[before].loose, [])
        found = set(alike if len(alike) <= _MOST_ALIKE else ())
        found.update(self._cases.get(before, ()))
        for each in self.old.predecessors[before]:
            if each in self.to:
                found.update(self.new.blocks[self.to[each]].successors)
        for each in self.old.blocks[before].successors:
            if each in self.to:
                found.update(self.new.predecessors[self.to[each]])
        for step in (-1, 1):
            beside = self.to.get(before + step, -step) - step
            if 0 <= beside < len(self.new.blocks):
                found.add(beside)
        return {each for each in found if each not in self.of}


def _cases(old: FunctionCode, new: FunctionCode) -> dict[int, Counter[int]]:
    """Of blocks that tables lead to, how often the same entry leads to each block now.

    Tables are in the order of their jumps; entries that were put between others shift the rest.
    """
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for before, after in zip(old.tables, new.tables, strict=False):
        if len(before) == len(after):
            spans = [Match(0, 0, len(before))]
        else:
            texts = SequenceMatcher[_Words](
                None, _loose(old, before), _loose(new, after), autojunk=False
            )
            spans = texts.get_matching_blocks()
        for i, j, size in spans:
            for one, other in zip(before[i : i + size], after[j : j + size], strict=True):
                found[one][other] += 1
    return found


def _loose(code: FunctionCode, blocks: Iterable[int]) -> list[_Words]:
    return [code.blocks[block].loose for block in blocks]


def _degree(function: FunctionCode, block: int) -> int:
    return len(function.blocks[block].successors) + len(function.predecessors[block])


def _numbers_of(texts: Iterable[_Words]) -> dict[_Words, list[int]]:
    found: dict[_Words, list[int]] = defaultdict(list)
    for number, words in enumerate(texts):
        found[words].append(number)
    return found
