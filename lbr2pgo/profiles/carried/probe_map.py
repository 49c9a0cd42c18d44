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
from lbr2pgo.support.arrays import F64, I64, Bools
from lbr2pgo.support.dataclass import dataclass

_SAME_CALL, _OTHER_CALL = 1.5, 0.4
"""What a pair of calls is worth that go to one function, and one of those through pointers."""
_UNSEEN = 0.05
"""What a pair is worth of which nothing is known."""
_ALIKE = 0.35
"""Blocks that are less alike are not paired."""
_SURE = 0.9
"""Blocks that are as much alike are the same."""


@dataclass(frozen=True, slots=True)
class ProbeMap:
    """Of probes by their numbers, to those in the function's later form."""

    to: Mapping[int, int]
    sure: frozenset[int]
    """Those whose code, or what they call, is as before."""


def probe_map(old: ProbedFunction, new: ProbedFunction) -> ProbeMap:
    """Pairs the probes of two forms of a function."""
    rows = np.flatnonzero(old.kind != UNSEEN)
    worth = _worth(old, new, rows)
    pairs = [(int(rows[i]), j) for i, j in _best_pairs(worth)]
    sure = frozenset(i for i, j in pairs if worth[np.searchsorted(rows, i), j] >= _SURE)
    return ProbeMap(dict(pairs), sure)


def _worth(old: ProbedFunction, new: ProbedFunction, rows: I64) -> F64:
    """(k, m): what pairs of the old probes in these rows and the new ones are worth."""
    blocks, others = old.kind[rows] == ProbeKind.BLOCK, new.kind == ProbeKind.BLOCK
    alike = _alikeness([old.words[i] for i in rows.tolist()], new.words)
    worth = np.where(alike >= _ALIKE, alike, 0.0)
    worth[~blocks[:, None] | ~others] = 0
    worth[:, new.kind == UNSEEN] = _UNSEEN
    for row in np.flatnonzero(~blocks).tolist():
        worth[row, ~others] = _calls(old, new, int(rows[row]))[~others]
    worth[:, 0] = 0
    entry = rows == ENTRY_INDEX
    worth[entry, ENTRY_INDEX + 1 :] = 0
    worth[~entry, ENTRY_INDEX : ENTRY_INDEX + 1] = 0
    worth[entry, ENTRY_INDEX : ENTRY_INDEX + 1] = 1
    return worth


def _calls(old: ProbedFunction, new: ProbedFunction, row: int) -> F64:
    """(m,): what pairs of an old call and the new probes are worth."""
    callees = old.callees[row]
    if callees:
        same = np.array([not callees.isdisjoint(each) for each in new.callees])
        return np.where(same, _SAME_CALL, np.where(new.kind == UNSEEN, _UNSEEN, 0.0))
    same = new.kind == old.kind[row]
    return np.where(same, _OTHER_CALL, np.where(new.kind == UNSEEN, _UNSEEN, 0.0))


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
