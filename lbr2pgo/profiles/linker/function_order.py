"""How much functions ran, and the orders that a linker can put them in.

That by calls is C³ ("hfsort"): Ottoni and Maher, "Optimizing Function Placement for Large-Scale
Data-Center Applications", CGO 2017.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import TO
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import F64, I64, U64, Bools
from lbr2pgo.support.sums import add_at, multiplied, sums_of_pairs
from lbr2pgo.support.tables import table

_LARGEST = 1 << 20
"""Bytes of a cluster: half a large page, as in the paper."""
_HOT = 0.99
"""Hot functions make this share of all bytes that ran."""
_RARE = 0.1
"""A caller that makes a smaller share of a function's calls is none to stand behind (BOLT:
HFSort.cpp, ArcThreshold)."""


@table
class FunctionCalls:
    """Calls between functions, by their numbers; (c,) each."""

    caller: I64
    callee: I64
    count: U64

    def summed(self) -> FunctionCalls:
        """The same, each pair once, ordered."""
        return FunctionCalls(*sums_of_pairs(self.caller, self.callee, self.count))


def by_calls(size: U64, weight: U64, calls: FunctionCalls) -> I64:
    """The order (n,) of functions of this size in bytes and this weight, the heaviest bytes first.

    Each function, the densest first, goes behind the cluster of its most frequent caller; then
    clusters stand by their density.

    >>> calls = FunctionCalls(np.array([0, 2]), np.array([1, 1]), np.array([9, 1], np.uint64))
    >>> size, weight = np.array([[10, 10, 10], [50, 90, 70]], np.uint64)
    >>> by_calls(size, weight, calls).tolist()
    [0, 1, 2]
    """
    sizes = np.maximum(size.astype(np.float64), 1.0)
    density = weight.astype(np.float64) / sizes
    clusters = _Clusters(sizes, weight.astype(np.float64))
    best = _most_frequent_caller(len(size), calls)
    for function in np.argsort(-density, kind="stable").tolist():
        if best[function] >= 0:
            clusters.append(best[function], function)
    return clusters.order()


def by_first_runs(flow: FunctionFlow, rank: I64, is_early: Bools) -> I64:
    """The order (n,) of functions for a start: early and hot, other early, other hot, the rest.

    Early ones stand by their `rank` (n,), all others by their calls.
    """
    called = by_calls(flow.size, flow.weight, flow.calls)
    place = np.empty(len(called), np.int64)
    place[called] = np.arange(len(called))
    group = 2 * ~is_early + ~_hot(flow.size, flow.weight)
    order: I64 = np.lexsort((place, np.where(is_early, rank, 0), group))
    return order


def _hot(size: U64, weight: U64) -> Bools:
    """Which functions (n,) have, the densest first, all but a hundredth of the bytes that ran.

    >>> _hot(np.array([10, 10, 10], np.uint64), np.array([900, 95, 5], np.uint64)).tolist()
    [True, True, False]
    """
    bytes_ran = weight.astype(np.float64)
    order = np.argsort(-bytes_ran / np.maximum(size, 1), kind="stable")
    before = np.cumsum(bytes_ran[order]) - bytes_ran[order]
    found: Bools = np.empty(len(size), np.bool_)
    found[order] = before < _HOT * bytes_ran.sum()
    return found


def _most_frequent_caller(functions: int, calls: FunctionCalls) -> list[int]:
    total = np.bincount(calls.callee, calls.count.astype(np.float64), functions)
    others: Bools = calls.caller != calls.callee
    caller, callee = calls.caller[others], calls.callee[others]
    count = calls.count[others].astype(np.float64)
    order = np.lexsort((-caller, count, callee))
    best = np.full(functions, -1)
    often = count[order] >= _RARE * total[callee[order]]
    best[callee[order][often]] = caller[order][often]  # the last one of each callee stays
    found: list[int] = best.tolist()
    return found


class _Clusters:
    def __init__(self, size: F64, weight: F64) -> None:
        self._size, self._weight = size.tolist(), weight.tolist()
        self._of = list(range(len(size)))
        self._members = [[i] for i in self._of]

    def append(self, caller: int, function: int) -> None:
        """Put a function's cluster behind its caller's, unless that becomes too large."""
        first, second = self._of[caller], self._of[function]
        if first == second or self._size[first] + self._size[second] > _LARGEST:
            return
        for member in self._members[second]:
            self._of[member] = first
        self._members[first] += self._members[second]
        self._members[second] = []
        self._size[first] += self._size[second]
        self._weight[first] += self._weight[second]

    def order(self) -> I64:
        kept = [i for i, members in enumerate(self._members) if members]
        kept.sort(key=lambda i: -self._weight[i] / self._size[i])
        return np.array([member for i in kept for member in self._members[i]], np.int64)


@table
class FunctionFlow:
    """Functions that ran, ordered by address, with those that they were split into; (f,) each."""

    function: I64
    size: U64
    """Bytes of it that ran."""
    weight: U64
    """Bytes that ran, as often as they did."""
    calls: FunctionCalls
    """By places in these columns."""


def function_flow(flow: Flow, functions: Functions) -> FunctionFlow:
    """Add counts up by function."""
    code = flow.instructions
    owner = owners(functions.containing(code.address), functions)
    ran = np.flatnonzero((flow.executed > 0) & (owner >= 0))
    function, place = np.unique(owner[ran], return_inverse=True)
    size, weight = np.zeros((2, len(function)), np.uint64)
    add_at(size, place, code.size[ran].astype(np.uint64))
    add_at(weight, place, multiplied(flow.executed[ran], code.size[ran].astype(np.uint64)))
    number = np.full(len(functions) + 1, -1)
    number[function] = np.arange(len(function))
    return FunctionFlow(function, size, weight, _calls(flow, functions, number))


def owners(place: I64, functions: Functions) -> I64:
    """The function (n,) that each part of one is of; -1 for what is of none."""
    found: I64 = np.append(functions.parent, -1)[place]
    return found


def _calls(flow: Flow, functions: Functions, number: I64) -> FunctionCalls:
    """Branches to where functions begin, from other functions that ran or from themselves."""
    branches = flow.branches
    rows = np.flatnonzero((flow.branch_from >= 0) & (branches.known & TO != 0))
    target = functions.containing(branches.to[rows])
    is_root = target >= 0
    is_root[is_root] = functions.start[target[is_root]] == branches.to[rows[is_root]]
    is_root &= owners(target, functions) == target
    caller = number[owners(functions.containing(branches.from_[rows]), functions)]
    callee = number[np.where(is_root, target, -1)]
    made = (caller >= 0) & (callee >= 0) & (caller != callee)
    return FunctionCalls(caller[made], callee[made], branches.count[rows[made]]).summed()
