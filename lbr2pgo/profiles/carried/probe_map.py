"""Which probes of a function are which in its later form.

Probes are numbered in the order of the source, blocks and the calls in them. So both forms are two
sequences, and the probes that stay are pairs in the same order: those whose calls go to the same
functions and whose code reads most alike. Of a longest common subsequence this is the weighted
form; the weight of a word is the more, the fewer probes have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    return _pairs(old, new, renamed, old.seen, is_part=False)


def part_map(
    old: ProbedFunction, new: ProbedFunction, renamed: Mapping[str, str], rows: Sequence[int]
) -> ProbeMap:
    """Pairs these probes of a function with those of one that was split off it."""
    return _pairs(old, new, renamed, np.array(rows, np.int64), is_part=True)


def likeness(old: ProbedFunction, new: ProbedFunction) -> float:
    """Share of probes that two functions have in common, from 0 to 1."""
    return 2 * len(probe_map(old, new).sure) / (len(old.seen) + len(new.seen) or 1)


def _pairs(
    old: ProbedFunction,
    new: ProbedFunction,
    renamed: Mapping[str, str],
    rows: I64,
    *,
    is_part: bool,
) -> ProbeMap:
    if not len(rows) or not len(new):
        return ProbeMap({}, frozenset())
    worth = _worth(old, new, renamed, rows)
    _keep_entry(worth, rows, is_part=is_part)
    in_order = _best_pairs(worth)
    pairs = [*in_order, *_moved(worth, in_order)]
    sure = frozenset(int(rows[i]) for i, j in pairs if worth[i, j] >= _SURE)
    return ProbeMap({int(rows[i]): j for i, j in pairs}, sure)


def _keep_entry(worth: F64, rows: I64, *, is_part: bool) -> None:
    """Let the entry be the entry; a part is entered where nobody entered before."""
    is_entry = rows == ENTRY_INDEX
    worth[:, 0] = 0
    if is_part:
        return
    worth[is_entry] = 0
    worth[:, ENTRY_INDEX : ENTRY_INDEX + 1] = 0
    worth[is_entry, ENTRY_INDEX : ENTRY_INDEX + 1] = 1


def _moved(worth: F64, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of what is left, each the best of both, wherever they stand."""
    left = worth.copy()
    for row, column in pairs:
        left[row], left[:, column] = 0, 0
    best = left.argmax(axis=1)
    return [
        (row, column)
        for row, column in enumerate(best.tolist())
        if left[row, column] >= _MOVED and left[:, column].argmax() == row
    ]


def _worth(old: ProbedFunction, new: ProbedFunction, renamed: Mapping[str, str], rows: I64) -> F64:
    """(k, m): what pairs of the old probes in these rows and the new ones are worth."""
    alike = _alikeness([old.words[row] for row in rows.tolist()], new.words)
    worth = np.where(alike >= _ALIKE, alike, 0.0)
    is_block, were_blocks = new.kind == ProbeKind.BLOCK, old.kind[rows] == ProbeKind.BLOCK
    worth[were_blocks[:, None] != is_block] = 0
    for row in np.flatnonzero(~were_blocks).tolist():
        callees = frozenset(renamed.get(each, each) for each in old.callees[rows[row]])
        there = [not callees.isdisjoint(each) for each in new.callees] if callees else []
        worth[row] = (
            _SAME_CALL * np.array(there)
            if callees
            else _OTHER_CALL * (new.kind == old.kind[rows[row]])
        )
    worth[:, new.kind == UNSEEN] = _UNSEEN
    return worth


def _alikeness(old: Sequence[Counter[str]], new: Sequence[Counter[str]]) -> F64:
    """(k, m): cosines of the words of probes, rare words weighing more."""
    shared = Counter(word for each in (*old, *new) for word in each)
    number = {word: i for i, word in enumerate(shared)}
    rarity = np.log(1 + len(old) + len(new)) - np.log(np.array(list(shared.values()), np.float64))
    one, other = (_vectors(each, number, rarity) for each in (old, new))
    alike: F64 = one @ other.T
    return alike


def _vectors(words: Sequence[Counter[str]], number: Mapping[str, int], rarity: F64) -> F64:
    vectors = np.zeros((len(words), len(number)))
    for row, each in enumerate(words):
        most = max(each.values(), default=1)
        for word, count in each.items():
            vectors[row, number[word]] = np.sqrt(count / most)
    vectors *= rarity
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=vectors, where=length > 0)


def _best_pairs(worth: F64) -> list[tuple[int, int]]:
    """The pairs (row, column), both ascending, that are worth most together."""
    rows, columns = worth.shape
    best = np.zeros(columns + 1)
    came = np.zeros((rows, columns + 1), np.uint8)
    for row in range(rows):
        paired = np.concatenate([[0.0], best[:-1] + worth[row]])
        paired[1:][worth[row] <= 0] = -1
        taken = np.maximum(best, paired)
        after = np.maximum.accumulate(taken)
        came[row] = np.where(after > taken, 2, np.where(paired > best, 1, 0))
        best = after
    pairs = []
    row, column = rows - 1, columns
    while row >= 0 and column > 0:
        if came[row, column] == 2:
            column -= 1
            continue
        if came[row, column] == 1:
            pairs.append((row, column - 1))
            column -= 1
        row -= 1
    return pairs[::-1]
