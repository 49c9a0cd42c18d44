"""Contexts that a compiler should inline; all others of a function become one.

So the profile stays small, and each part of a program that is compiled by itself finds what it
needs (LLVM: tools/llvm-profgen/CSPreInliner.cpp).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.model.compat import INLINED_ONCE, Compat
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.contexts._preinliner import LOST, ContextTrie, FunctionSizes
from lbr2pgo.profiles.llvm.contexts.call_order import top_down
from lbr2pgo.profiles.llvm.contexts.columns import (
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

_NO_LINE = np.uint64(np.iinfo(np.uint64).max)


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


def _ranks(names: tuple[str, ...]) -> I64:
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=lambda i: order_key(names[i]))] = np.arange(len(names))
    return rank


def _trie(profile: ContextProfile) -> ContextTrie:
    table, c = profile.table, profile.table.contexts
    size = len(c) + 1
    location = location_of(table.body.line, table.body.discriminator)
    first_line, first_count = np.full(size, _NO_LINE), np.zeros(size, np.uint64)
    first = np.flatnonzero(np.diff(table.body.context, prepend=-1))  # lines are ordered
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
    body, calls = _merged(profile.table, np.append(place, -1)[_final(merged_into)][1:])
    checksum = profile.table.checksums_of(contexts.name)
    table = replace(profile.table, contexts=contexts, body=body, calls=calls, checksum=checksum)
    attributes = np.where(has_samples, trie.attribute_bits[own], np.uint8(0))
    return ContextProfile(table, has_samples, attributes)


def _final(merged_into: I64) -> I64:
    """Into which samples all were merged in the end; -1 for those that were lost."""
    final = np.where(merged_into < 0, np.arange(len(merged_into)), merged_into)
    while not np.array_equal(final, further := final[final]):
        final = further
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
