"""Contexts that a compiler should inline; all others of a function become one.

So the profile stays small, and each part of a program that is compiled by itself finds what it
needs (LLVM: tools/llvm-profgen/CSPreInliner.cpp).

Callers are looked at before callees. Among functions that call each other in a circle, those that
call often come before those whom they call (buildTopDownOrder, scc_member_iterator).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.model.compat import INLINED_ONCE, Compat
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.contexts._contexts import strong_components
from lbr2pgo.profiles.llvm.contexts._preinliner import LOST, ContextTrie, FunctionSizes
from lbr2pgo.profiles.llvm.contexts.columns import (
    NO_LINE,
    LineColumns,
    line_and_discriminator,
    location_of,
)
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.context_trees import breadth_first, call_hashes
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_names import guid, order_key
from lbr2pgo.profiles.llvm.sample_summary import detailed
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import inverse, roots_of


@dataclass(frozen=True, slots=True)
class Hotness:
    """Which counts are cold, and from which on nothing is hotter."""

    cold: int
    hot: int


def hotness(profile: ContextProfile) -> Hotness:
    """By the counts of all lines, those of one function added up."""
    body, names = profile.table.body, profile.table.contexts.name
    lines = RowSums()
    ran = np.flatnonzero(body.count)
    location = location_of(body.line[ran], body.discriminator[ran])
    function = names[body.context[ran]].astype(np.uint64)
    lines.add_rows(function, location, np.zeros_like(location), body.count[ran])
    counts = lines.counts()
    values, times = np.unique(counts, return_counts=True)
    frequencies = Counter(dict(zip(values.tolist(), times.tolist(), strict=True)))
    cutoffs = {row.cutoff: row.minimum for row in detailed(frequencies, int(counts.sum()))}
    return Hotness(cutoffs[999_999], cutoffs[100_000])


def preinlined(profile: ContextProfile, sizes: FunctionSizes, compat: Compat) -> ContextProfile:
    """The contexts that are left."""
    table, limits = profile.table, hotness(profile)
    guids = np.array([guid(name) for name in table.names], np.uint64)
    trie = _trie(profile)
    c = table.contexts
    weight = trie.call_weights()[1:]
    called = np.flatnonzero(c.parent >= 0)
    order = top_down(
        c.name[c.parent[called]], c.name[called], weight[called], _ranks(table.names), limits.cold
    )
    offsets, contexts = _contexts_of(profile, guids)
    trie.inline(
        order,
        offsets,
        contexts,
        sizes,
        guids,
        limits.cold,
        limits.hot,
        compat.follows(INLINED_ONCE),
    )
    return _remaining(profile, trie)


def _ranks(names: Sequence[str]) -> I64:
    order = sorted(range(len(names)), key=lambda i: order_key(names[i]))
    return inverse(np.array(order, np.int64))


def _trie(profile: ContextProfile) -> ContextTrie:
    table, c = profile.table, profile.table.contexts
    size = len(c) + 1
    location = location_of(table.body.line, table.body.discriminator)
    first_line, first_count = np.full(size, NO_LINE), np.zeros(size, np.uint64)
    first = table.body.first_rows
    first_line[table.body.context[first] + 1] = location[first]
    first_count[table.body.context[first] + 1] = table.body.count[first]
    trie = ContextTrie(
        _under_root(c.parent + 1, -1),
        _under_root(location_of(c.line, c.discriminator), 0),
        _under_root(c.name.astype(np.uint64), 0),
        _under_root(profile.has_samples.astype(np.uint8), 0),
        _under_root(c.head, 0),
        _under_root(c.total, 0),
        first_line,
        first_count,
        _under_root(profile.attributes, 0),
    )
    row = table.calls.row
    callee = table.calls.callee.astype(np.uint64)
    trie.add_calls(table.body.context[row] + 1, location[row], callee, table.calls.count)
    return trie


def _under_root(column: np.ndarray, root: int) -> np.ndarray:
    return np.concatenate((np.array([root]).astype(column.dtype), column))


def _contexts_of(profile: ContextProfile, guids: U64) -> tuple[I64, I64]:
    """The contexts of each function that have samples, in LLVM's order: offsets, and nodes."""
    c = profile.table.contexts
    order = breadth_first(
        c.parent, call_hashes(c.name, location_of(c.line, c.discriminator), guids)
    )
    order = order[profile.has_samples[order]]
    order = order[np.argsort(c.name[order], kind="stable")]
    bounds = np.searchsorted(c.name[order], np.arange(len(profile.table.names) + 1))
    return bounds, order + 1


def _remaining(profile: ContextProfile, trie: ContextTrie) -> ContextProfile:
    nodes, outer, samples, merged_into = trie.result()
    nodes, outer, samples = nodes[1:], outer[1:] - 1, samples[1:]
    has_samples = samples >= 0
    own = np.maximum(samples, 0)
    line, discriminator = line_and_discriminator(trie.locations[nodes])
    contexts = Contexts(
        parent=outer,
        line=line,
        discriminator=discriminator,
        name=profile.table.contexts.name[nodes - 1],
        total=np.where(has_samples, trie.totals[own], np.uint64(0)),
        head=np.where(has_samples, trie.heads[own], np.uint64(0)),
    )
    place = np.full(len(merged_into), -1)
    place[samples[has_samples]] = np.flatnonzero(has_samples)
    place = np.append(place, -1)[_final(merged_into)][1:]
    body, calls = _merged(profile.table, place)
    table = replace(
        profile.table, contexts=contexts, body=body, calls=calls,
        checksum=profile.table.checksums_of(contexts.name), vtables=profile.table.vtables_at(place),
    )  # fmt: skip
    attributes = np.where(has_samples, trie.attribute_bits[own], np.uint8(0))
    return ContextProfile(table, has_samples, attributes)


def _final(merged_into: I64) -> I64:
    """Into which samples all were merged in the end; -1 for those that were lost."""
    final = roots_of(np.where(merged_into < 0, np.arange(len(merged_into)), merged_into))
    return np.where(merged_into[final] == LOST, -1, final)


def _merged(table: ProfileTable, place: I64) -> tuple[Body, CallTargets]:
    """Lines and calls of contexts that were merged; `place` is -1 for what is gone."""
    b, t, lines = table.body, table.calls, LineColumns()
    context, location = place[b.context], location_of(b.line, b.discriminator)
    rows = np.flatnonzero(context >= 0)
    lines.add(context[rows], location[rows], b.count[rows])
    kept = np.flatnonzero(context[t.row] >= 0)
    row = t.row[kept]
    lines.add_calls(context[row], location[row], t.callee[kept], t.count[kept])
    return lines.columns()


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
