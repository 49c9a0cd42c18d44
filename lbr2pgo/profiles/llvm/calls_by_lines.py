"""Call probes of programs in which blocks alone have any: line tables tell them.

The number of a call is its discriminator until a late pass makes a probe of it, which only x86 has
(LLVM 22: lib/CodeGen/PseudoProbeInserter.cpp). Debug information keeps it for AArch64 and RISC-V,
too, and those of the calls through which a call was inlined.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.compat import CALLS_BY_PROBES_ALONE, OURS, Compat
from lbr2pgo.profiles.llvm.discriminators import probe_attributes, probe_kind, probe_number
from lbr2pgo.profiles.llvm.source_places import pair
from lbr2pgo.program.dwarf.debug_info import DebugInfo, Scopes
from lbr2pgo.program.pseudo_probes import InlineTree, ProbeTable
from lbr2pgo.support.addresses import PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I32, I64
from lbr2pgo.support.distinct import begins, distinct, place_of
from lbr2pgo.support.intervals import last_at_or_below


def with_calls(
    table: ProbeTable, sources: PlacedAddresses, debug: DebugInfo, compat: Compat = OURS
) -> ProbeTable:
    """The table with probes of the calls among these instructions, if it has none of any call."""
    if not len(table) or table.is_call.any() or compat.follows(CALLS_BY_PROBES_ALONE):
        return table
    sources = distinct(sources[sources >= table.address[0]])
    found, place = debug.places(sources)
    word = found.discriminator[place]
    node = nodes_by_lines(table, sources, found.scope[place], found.scopes)
    kept = (probe_kind(word) > 0) & (node >= 0)
    address, word = np.append(table.address, sources[kept]), word[kept]
    order = np.argsort(address, kind="stable")
    return ProbeTable(
        image_addresses(address[order]),
        np.append(table.node, node[kept].astype(np.int32))[order],
        np.append(table.index, probe_number(word))[order],
        np.append(table.kind, probe_kind(word))[order],
        np.append(table.attributes, probe_attributes(word))[order],
        np.append(table.discriminator, np.zeros_like(word))[order],
        table.tree,
    )


def nodes_by_lines(table: ProbeTable, sources: PlacedAddresses, scope: I32, scopes: Scopes) -> I64:
    """The function in the tree that each instruction is in, -1 where the tree has none.

    It is the one at the same calls, from the function on that has the probe before: names are
    others in line tables (-g1).
    """
    before = last_at_or_below(table.address, sources)
    node = table.tree.outermost()[table.node[before]]
    call, inlined = _inlined(table.tree)
    parent = np.append(scopes.parent, np.int32(-1))  # the last ones for a row of -1
    site = np.append(probe_number(scopes.discriminator), np.uint32(0)).astype(np.int64)
    around = [scope]
    while (around[-1] >= 0).any():
        around.append(parent[around[-1]])
    for outer, inner in zip(around[:0:-1], around[-2::-1], strict=True):
        at_call = inlined[place_of(pair(node, site[inner]), call)]
        node = np.where(outer >= 0, at_call, node)
    return np.where(scope >= 0, node, -1)


def _inlined(tree: InlineTree) -> tuple[I64, I64]:
    """Calls at which one function was inlined, as pairs of node and site; and its node, then -1."""
    inner = np.flatnonzero(tree.parent >= 0)
    call = pair(tree.parent[inner].astype(np.int64), tree.site[inner].astype(np.int64))
    order = np.argsort(call, kind="stable")
    is_first = begins(call[order])
    is_only = is_first & np.append(is_first[1:], True)
    return call[order[is_only]], np.append(inner[order[is_only]], -1)
