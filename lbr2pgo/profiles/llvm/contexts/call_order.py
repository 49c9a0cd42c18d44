"""Functions in the order in which calls are inlined: callers before callees.

Among functions that call each other in a circle, those that call often come before those whom
they call (LLVM: tools/llvm-profgen/CSPreInliner.cpp buildTopDownOrder, scc_member_iterator).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.contexts._contexts import strong_components
from lbr2pgo.support.arrays import I64, U64

Edge = tuple[int, int]


def top_down(caller: I64, callee: I64, weight: U64, rank: I64, cold: int) -> I64:
    """All functions, callers first.

    Calls (k,) that are not more than `cold` together don't count. rank (n,): the place of each
    function by its name, which decides wherever calls don't.
    """
    edges, weights = _calls(rank[caller], rank[callee], weight, cold)
    known = _Edges(edges, weights)
    parts = _components(edges, len(rank))
    ordered = [part if len(part) < 2 else known.ordered(part) for part in parts]
    order = np.concatenate([np.empty(0, np.int64), *ordered])[::-1]
    found: I64 = np.argsort(rank)[order]
    return found


def _calls(caller: I64, callee: I64, weight: U64, cold: int) -> tuple[I64, U64]:
    """Who calls whom (k, 2), sorted, and how often."""
    calls, zeros = RowSums(), np.zeros(len(caller), np.uint64)
    calls.add_rows(caller.astype(np.uint64), callee.astype(np.uint64), zeros, weight)
    edges, weights = calls.rows()[:, :2].astype(np.int64), calls.counts()
    kept = weights > np.uint64(cold) if cold else np.ones(len(weights), np.bool_)
    edges, weights = edges[kept], weights[kept]
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return edges[order], weights[order]


def _components(edges: I64, size: int) -> list[I64]:
    """Functions that call each other in a circle, or one alone; callees first."""
    # Node 0 calls all functions. networkx takes 100 times as long (benchmarks/own_graphs.py), and
    # has no order within a component, on which the result depends.
    offsets = np.concatenate(([0], size + np.searchsorted(edges[:, 0], np.arange(size))))
    offsets = np.append(offsets, size + len(edges))
    targets = np.concatenate((np.arange(size), edges[:, 1])) + 1
    nodes, component = strong_components(offsets, targets)
    nodes, component = nodes[:-1] - 1, component[:-1]
    return np.split(nodes, np.flatnonzero(np.diff(component)) + 1)


class _Edges:
    """The calls of a graph, and how its circles are cut open."""

    def __init__(self, edges: I64, weights: U64) -> None:
        """Edges (k, 2) are sorted."""
        self._edges, self._weights = edges, weights

    def ordered(self, members: I64) -> I64:
        """The functions of one component, callees first."""
        component = set(members.tolist())
        inner = {member: self._from(member, component) for member in members.tolist()}
        heavy_first = sorted(
            ((edge, weight) for edges in inner.values() for edge, weight in edges.items()),
            key=lambda item: -item[1],
        )
        tree = _spanning_tree([edge for edge, _ in heavy_first])
        return np.array(_walk(heavy_first, inner, tree)[::-1], np.int64)

    def _from(self, function: int, members: set[int]) -> dict[Edge, int]:
        first, past = np.searchsorted(self._edges[:, 0], [function, function + 1])
        found = zip(
            self._edges[first:past, 1].tolist(), self._weights[first:past].tolist(), strict=True
        )
        return {(function, callee): weight for callee, weight in found if callee in members}


def _spanning_tree(edges: list[Edge]) -> set[Edge]:
    """The first edges that make no circle, whichever way they lead."""
    group: dict[int, int] = {}

    def find(node: int) -> int:
        while (above := group.setdefault(node, node)) != node:
            group[node] = group[above]
            node = group[node]
        return node

    tree = set()
    for source, target in edges:
        one, other = find(source), find(target)
        if one != other:
            group[other] = one
            tree.add((source, target))
    return tree


def _walk(
    edges: list[tuple[Edge, int]], inner: dict[int, dict[Edge, int]], tree: set[Edge]
) -> list[int]:
    """Functions from those on that no edge of the tree leads to, along its edges."""
    incoming: dict[int, set[Edge]] = {function: set() for function in inner}
    for edge in tree:
        incoming[edge[1]].add(edge)
    roots = dict.fromkeys(source for (source, _), _ in edges if not incoming[source])
    waiting, order = deque(roots), []
    while waiting:
        function = waiting.popleft()
        order.append(function)
        for edge in inner[function]:
            incoming[edge[1]].discard(edge)
            if edge in tree and not incoming[edge[1]]:
                waiting.append(edge[1])
    return order
