"""How large functions are in the binary, by what they were inlined into."""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._preinliner import FunctionSizes
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_trees import call_hashes
from lbr2pgo.profiles.llvm.source_places import InlineContexts, PlacesOfLines, inline_contexts
from lbr2pgo.support.arrays import I64, U8, U64


def inlined_sizes(places: PlacesOfLines, place: I64, size: U8) -> tuple[InlineContexts, I64]:
    """Functions inlined at places, and how many bytes each has, -1 for those without instructions.

    Of instructions (m,) their place, -1 for those that don't count, and their bytes.
    """
    inlined, innermost = inline_contexts(places)
    inline = np.append(innermost, -1)[place]
    known = np.flatnonzero(inline >= 0)
    total = np.full(len(inlined.parent), -1)
    total[inline[known]] = 0
    np.add.at(total, inline[known], size[known])
    return inlined, total


def function_sizes(inlined: InlineContexts, size: I64, guids: U64) -> FunctionSizes:
    """Of inlined functions (i,) that have so many bytes, -1 for those without instructions.

    Where a function is only known in other contexts, LLVM takes any: the first one by a hash.
    """
    nodes, zero = RowIds(), np.zeros(1, np.uint64)
    nodes.number_rows(zero, zero, ~zero)  # the root
    function = inlined.function.astype(np.uint64)
    location = location_of(inlined.line, inlined.discriminator)
    here = known = np.flatnonzero(size >= 0)
    zeros = np.zeros(len(known), np.uint64)
    node = nodes.number_rows(zeros, zeros, function[known])
    while (inner := np.flatnonzero(inlined.parent[here] >= 0)).size:
        outer = inlined.parent[here[inner]]
        columns = (node[inner].astype(np.uint64), location[here[inner]], function[outer])
        here = here.copy()
        node[inner], here[inner] = nodes.number_rows(*columns), outer
    total = np.full(len(nodes), -1)
    total[node] = 0
    np.add.at(total, node, size[known])
    return FunctionSizes(nodes, total, _first_children(nodes.rows(), guids))


def _first_children(rows: U64, guids: U64) -> I64:
    """The child of each node that LLVM's tree has first, -1 for none."""
    key = call_hashes(rows[1:, 2].astype(np.int64), rows[1:, 1], guids)
    order = np.lexsort((key, rows[1:, 0])) + 1
    parent = rows[order, 0].astype(np.int64)
    is_first = np.diff(parent, prepend=-1) != 0
    first = np.full(len(rows), -1)
    first[parent[is_first]] = order[is_first]
    return first
