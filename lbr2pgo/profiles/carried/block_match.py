"""Which blocks of a function are which in its later form.

Blocks that read alike and are few are found first, then those whose neighbours in the flow were
found, from strict to loose: a block is likest to the one with most of its instructions, calls and
neighbours. Histograms of instructions tell more blocks apart than hashes of them do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
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
_THROUGH = 0.5
"""How near a neighbour is that another block stands before."""
_MOST_WAYS = 16
"""To or from a block, beyond which they tell little: tables tell of cases."""
_MOST_ALIKE = 8
"""Blocks of one function with the same instructions, of which all are tried."""

_Words = tuple[str, ...]
_Candidate = tuple[float, int, bool]
"""How much speaks for a pair, its later block, and whether anything else than instructions does."""


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
        self._known: dict[tuple[int, int], float] = {}
        self._unpaired = dict.fromkeys(range(len(old.blocks)))
        self._speaks: dict[int, list[_Candidate]] = {}
        """What speaks for pairs, which holds until a neighbour is paired."""
        self._alike = _numbers_of(block.loose for block in new.blocks)
        self._cases = _cases(old, new)
        self._old_ways, self._new_ways = _ways(old), _ways(new)
        self._old_degree, self._new_degree = _degrees(old), _degrees(new)

    def pair(self, before: int, after: int) -> None:
        """Take two blocks for the same."""
        self.to[before], self.of[after] = after, before
        del self._unpaired[before]
        self._speaks.pop(before + 1, None)
        for way in self._old_ways:
            for block in way(before, ()):
                self._speaks.pop(block, None)

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
        for before in self._unpaired:
            for score, after, is_beside in self._candidates(before):
                if score >= least and (alone or is_beside) and after not in self.of:
                    best[before] = max(best.get(before, (0.0, 0)), (score, -after))
                    wanted[after] = max(wanted.get(after, (0.0, 0)), (score, -before))
        count = len(self.to)
        for before, (_, after) in best.items():
            if wanted[-after][1] == -before:
                self._pair_likely(before, -after)
        return len(self.to) - count

    def _candidates(self, before: int) -> list[_Candidate]:
        """Blocks that one may have become."""
        if before not in self._speaks:
            self._speaks[before] = [
                (self._likeness(before, after) + around, after, around > 0)
                for after, around in self._around(before).items()
                if after not in self.of
            ]
        return self._speaks[before]

    def _around(self, before: int) -> dict[int, float]:
        """What speaks for blocks that one may have become, beside their instructions."""
        alike = self._alike.get(self.old.blocks[before].loose, [])
        around = dict.fromkeys(alike if len(alike) <= _MOST_ALIKE else (), 0.0)
        degree = self._old_degree[before]
        for after, agreed in self._agreement(before).items():
            size = max(degree, self._new_degree[after])
            around[after] = _NEIGHBOURS * agreed / size
        cases = self._cases.get(before, Counter())
        for after, times in cases.items():
            around[after] = around.get(after, 0.0) + _NEIGHBOURS * times / cases.total()
        beside = self.to.get(before - 1, len(self.new.blocks)) + 1
        if beside < len(self.new.blocks):
            around[beside] = around.get(beside, 0.0) + _BESIDE
        return around

    def _agreement(self, before: int) -> Mapping[int, float]:
        """How many neighbours of a block have become neighbours of each block."""
        found: dict[int, float] = defaultdict(float)
        for old, new in zip(self._old_ways, reversed(self._new_ways), strict=True):
            for block, near in old(before, self.to).items():
                if block in self.to:
                    for after, as_near in new(self.to[block], self.of).items():
                        found[after] += min(near, as_near)
        return found

    def _likeness(self, before: int, after: int) -> float:
        pair = before, after
        if pair not in self._known:
            self._known[pair] = self.old.blocks[before].likeness(self.new.blocks[after])
        return self._known[pair]

    def _pair_likely(self, before: int, after: int) -> None:
        is_new = before not in self.to and after not in self.of
        if is_new and self._likeness(before, after) >= _LIKELY:
            self.pair(before, after)


_Way = Callable[[int, Container[int]], dict[int, float]]


def _ways(code: FunctionCode) -> tuple[_Way, _Way]:
    """What tells of a block the blocks before it, or behind it, and how near they are.

    Blocks that are no pair yet are looked through: they may be parts of others.
    """

    def way(all_ways: Iterable[Sequence[int]]) -> _Way:
        few = [ways if len(ways) <= _MOST_WAYS else () for ways in all_ways]

        def near(block: int, paired: Container[int]) -> dict[int, float]:
            found = dict.fromkeys(few[block], 1.0)
            for each in few[block]:
                if each not in paired:
                    for other in few[each]:
                        found.setdefault(other, _THROUGH)
            return found

        return near

    return way(code.predecessors), way(block.successors for block in code.blocks)


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


def _degrees(code: FunctionCode) -> list[int]:
    pairs = zip(code.blocks, code.predecessors, strict=True)
    return [len(block.successors) + len(before) for block, before in pairs]


def _numbers_of(texts: Iterable[_Words]) -> dict[_Words, list[int]]:
    found: dict[_Words, list[int]] = defaultdict(list)
    for number, words in enumerate(texts):
        found[words].append(number)
    return found
