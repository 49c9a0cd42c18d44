"""Which probes of a function are which in its later form.

Probes are numbered in the order of the source, blocks and the calls in them. So both forms are two
sequences, and what stays are pairs in the same order. Those that read alike as no others do come
first; between them, pairs are chosen that are worth most together: calls of the same function, and
blocks with most of their words in common, where a rare word weighs more. What is left may have
moved, and is told by the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence

import numpy as np

from lbr2pgo.profiles.carried.probe_code import UNSEEN, ProbedFunction
from lbr2pgo.program.pseudo_probes import ENTRY_INDEX, ProbeKind
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.dataclass import dataclass

_SAME_CALL, _OTHER_CALL = 1.5, 0.4
"""What a pair of calls is worth that go to one function, and one of those through pointers."""
_UNSEEN = 0.05
"""What a pair is worth of which nothing is known."""
_ALIKE = 0.1
"""Blocks that are less alike are not paired."""
_MOVED = 0.6
"""Blocks elsewhere that are as much alike have moved."""
_SURE = 0.9
"""Blocks that are as much alike are the same."""
_FEW_WORDS = 8
"""Blocks of fewer are often alike by chance."""
_MOST_PAIRS = 1 << 23
"""Of a stretch; beyond that many it is not compared."""
_UNCHANGED: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ProbeMap:
    """Of probes by their numbers, to those in the function's later form."""

    to: Mapping[int, int]
    sure: frozenset[int]
    """Those whose code, or what they call, is as before."""


def probe_map(
    old: ProbedFunction, new: ProbedFunction, renamed: Mapping[str, str] = _UNCHANGED
) -> ProbeMap:
    """Pairs the probes of two forms of a function, whose callees have other names now."""
    rows, columns = old.seen, np.arange(ENTRY_INDEX, len(new))
    entry = (
        {ENTRY_INDEX: ENTRY_INDEX} if len(rows) and rows[0] == ENTRY_INDEX and len(columns) else {}
    )
    found = _Pairing(old, new, renamed).pairs(rows[len(entry) :], columns[1:])
    return ProbeMap({**entry, **found.to}, found.sure | entry.keys())


def part_map(
    old: ProbedFunction, new: ProbedFunction, renamed: Mapping[str, str], rows: Sequence[int]
) -> ProbeMap:
    """Pairs these probes of a function with those of one that was split off it."""
    columns = np.arange(ENTRY_INDEX, len(new))
    return _Pairing(old, new, renamed).pairs(np.array(rows, np.int64), columns)


def likeness(old: ProbedFunction, new: ProbedFunction) -> float:
    """Share of probes that two functions have in common, from 0 to 1."""
    return 2 * len(probe_map(old, new).sure) / (len(old.seen) + len(new.seen) or 1)


class _Pairing:
    """Pairs probes of a function with those of another one."""

    def __init__(
        self, old: ProbedFunction, new: ProbedFunction, renamed: Mapping[str, str]
    ) -> None:
        self._old, self._new = old, new
        self._callees = [
            frozenset(renamed.get(each, each) for each in names) for names in old.callees
        ]
        shared = Counter(word for each in (*old.words, *new.words) for word in each)
        self._number = {word: i for i, word in enumerate(shared)}
        probes = np.log(1 + len(old) + len(new))
        self._rarity = probes - np.log(np.array(list(shared.values()), np.float64))

    def pairs(self, rows: I64, columns: I64) -> ProbeMap:
        """Pairs of these probes."""
        to: dict[int, int] = {}
        sure: set[int] = set()

        def take(rows: I64, columns: I64, *, are_moved: bool) -> None:
            if not len(rows) or not len(columns):
                return
            worth = self._worth(rows, columns)
            for i, j in (_mutual if are_moved else _in_order)(worth):
                to[int(rows[i])] = int(columns[j])
                if worth[i, j] >= _SURE:
                    sure.add(int(rows[i]))

        for stretch in self._stretches(rows, columns):
            take(*stretch, are_moved=False)
        rows, columns = _without(rows, to), _without(columns, set(to.values()))
        take(rows, columns, are_moved=True)
        return ProbeMap(to, frozenset(sure))

    def _stretches(self, rows: I64, columns: I64) -> Iterator[tuple[I64, I64]]:
        """Pairs of probes that read alike as no others do, and what lies between those."""
        mine = _unique(
            (self._key(self._callees, self._old, row), i) for i, row in enumerate(rows.tolist())
        )
        theirs = _unique(
            (self._key(self._new.callees, self._new, row), j)
            for j, row in enumerate(columns.tolist())
        )
        pairs = [(i, theirs[key]) for key, i in mine.items() if key in theirs]
        before = (-1, -1)
        for pair in (*_ascending(pairs), (len(rows), len(columns))):
            yield rows[before[0] + 1 : pair[0]], columns[before[1] + 1 : pair[1]]
            yield rows[pair[0] : pair[0] + 1], columns[pair[1] : pair[1] + 1]
            before = pair

    @staticmethod
    def _key(callees: Sequence[frozenset[str]], function: ProbedFunction, row: int) -> Hashable:
        """What a probe reads like; None where that tells little."""
        if callees[row]:
            return callees[row]
        words = function.words[row]
        most = max(words.values(), default=1)
        return (
            frozenset((w, c / most) for w, c in words.items()) if len(words) >= _FEW_WORDS else None
        )

    def _worth(self, rows: I64, columns: I64) -> F64:
        """(k, m): what pairs of these old probes and new ones are worth."""
        worth = np.zeros((len(rows), len(columns)))
        if not 0 < worth.size <= _MOST_PAIRS:
            return worth
        kinds, kinds_now = self._old.kind[rows], self._new.kind[columns]
        one = self._vectors([self._old.words[row] for row in rows.tolist()])
        other = self._vectors([self._new.words[row] for row in columns.tolist()])
        np.matmul(one, other.T, out=worth)
        worth[worth < _ALIKE] = 0
        for i in np.flatnonzero(kinds != ProbeKind.BLOCK).tolist():
            callees = self._callees[int(rows[i])]
            if callees:
                there = [self._new.callees[row] for row in columns.tolist()]
                worth[i] = [_SAME_CALL * (not callees.isdisjoint(each)) for each in there]
            else:
                worth[i] = _OTHER_CALL * (kinds_now == kinds[i])
        worth[:, kinds_now == UNSEEN] = _UNSEEN
        return worth

    def _vectors(self, words: Sequence[Counter[str]]) -> F64:
        """Of the words of probes, so long that products are cosines."""
        vectors = np.zeros((len(words), len(self._number)))
        for row, each in enumerate(words):
            most = max(each.values(), default=1)
            for word, count in each.items():
                vectors[row, self._number[word]] = np.sqrt(count / most)
        vectors *= self._rarity
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, length, out=vectors, where=length > 0)
        return vectors


def _without(numbers: I64, taken: Container[int]) -> I64:
    return np.array([each for each in numbers.tolist() if each not in taken], np.int64)


def _unique(keys: Iterator[tuple[Hashable, int]]) -> dict[Hashable, int]:
    """Numbers of the keys that are there once."""
    found: dict[Hashable, int] = {}
    again: set[Hashable] = {None}
    for key, number in keys:
        if key in found:
            again.add(key)
        found[key] = number
    return {key: number for key, number in found.items() if key not in again}


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, given by their first numbers, whose second ones ascend as well."""
    ends: list[int] = []
    last: list[int] = []
    came = [-1] * len(pairs)
    for number, (_, second) in enumerate(pairs):
        at = bisect_left(ends, second)
        ends[at:], last[at:] = [second, *ends[at + 1 :]], [number, *last[at + 1 :]]
        came[number] = last[at - 1] if at else -1
    found = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = came[number]
    return found[::-1]


def _in_order(worth: F64) -> list[tuple[int, int]]:
    """The pairs (row, column), both ascending, that are worth most together.

    >>> _in_order(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.5]]))
    [(1, 0)]
    """
    rows, columns = worth.shape
    best = np.zeros(columns + 1)
    skips = np.zeros((rows, columns + 1), np.bool_)
    pairs = np.zeros((rows, columns + 1), np.bool_)
    for row in range(rows):
        paired = np.where(worth[row] > 0, best[:-1] + worth[row], 0)
        taken = best.copy()
        np.maximum(taken[1:], paired, out=taken[1:])
        after = np.maximum.accumulate(taken)
        skips[row] = after > taken
        pairs[row, 1:] = paired > best[1:]
        best = after
    found = []
    row, column = rows - 1, columns
    while row >= 0 and column > 0:
        if skips[row, column]:
            column -= 1
        elif pairs[row, column]:
            found.append((row, column - 1))
            row, column = row - 1, column - 1
        else:
            row -= 1
    return found[::-1]


def _mutual(worth: F64) -> list[tuple[int, int]]:
    """Pairs of which each is the best of both, wherever they stand."""
    if not worth.size:
        return []
    best, of = worth.argmax(axis=1).tolist(), worth.argmax(axis=0).tolist()
    return [(i, j) for i, j in enumerate(best) if of[j] == i and worth[i, j] >= _MOVED]
