"""Types of the objects whose methods are called, in a sample profile without contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.evidence.vtable_loads import VTABLE_LOADS, VtableLoads
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.correlate import uses_fs_discriminators
from lbr2pgo.profiles.llvm.probe_functions import probed_functions, probes_of
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.profiles.llvm.source_places import InlineContexts, inline_contexts, places_of
from lbr2pgo.profiles.llvm.vtable_counts import VtableCounts
from lbr2pgo.profiles.llvm.vtable_probes import probes_of_loads
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.code.loaded_calls import calls_through
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import OutputError


def vtable_loads(work: Work) -> VtableLoads:
    """Which virtual tables code loaded from; raises OutputError where nothing says it."""
    loads = work.told(VTABLE_LOADS)
    if loads is None or not loads.has_accesses:
        raise OutputError(
            "no sample profile was written: the recording does not say which virtual tables were "
            "used",
            cure="Record it: lbr2pgo record --data -- CMD, or leave out --vtables.",
        )
    return loads


def with_vtables(table: ProfileTable, work: Work) -> ProfileTable:
    """The same with the virtual tables that code of its functions loaded from.

    As llvm-profgen does with --data-access-perftrace (LLVM:
    llvm/tools/llvm-profgen/ProfileGenerator.cpp), but for code of functions that the profile lacks;
    and by probes, which llvm-profgen does not. Raises OutputError as `vtable_loads` does.
    """
    loads = vtable_loads(work)
    address = distinct(loads.ip)
    found = (_by_line if table.checksum is None else _by_probe)(work, address)
    symbols = distinct(loads.symbol)
    at = np.searchsorted(address, loads.ip)
    counts = VtableCounts(
        found.context[at], found.line[at], found.discriminator[at],
        np.searchsorted(symbols, loads.symbol), loads.count,
        tuple(work.program.symbols.names[row] for row in symbols.tolist()),
    )  # fmt: skip
    place = np.append(_rows(table, found.contexts, found.names), -1)  # the last one for no context
    return replace(table, vtables=counts.moved(place))


@dataclass(frozen=True, slots=True)
class _Found:
    """Where in functions, and what is inlined into them, instructions are; (n,) each."""

    context: I64
    """Row of the contexts, -1 for none."""
    line: I64
    """Or the number of a probe."""
    discriminator: I64
    contexts: InlineContexts
    """Their functions are indices into the names, -1 for those without one."""
    names: Sequence[str]


def _by_line(work: Work, address: PlacedAddresses) -> _Found:
    found, place = work.debug.places(address)
    places = places_of(found, is_fs=uses_fs_discriminators(work.program))
    contexts, innermost = inline_contexts(places)
    return _Found(innermost[place], *places.location(place), contexts, places.names)


def _by_probe(work: Work, address: PlacedAddresses) -> _Found:
    program, probes = work.program, work.program.probes
    known = probed_functions(work.debug, probes.symbols, address)
    calls = calls_through(program, address)
    table = probes_of(probes, known, address, work.compat)
    table = with_calls(table, placed_addresses(calls[calls > 0]), work.debug, work.compat)
    row = probes_of_loads(table, address, calls, program, work.debug)
    tree = table.tree
    site, used = tree.site.astype(np.int64), distinct(tree.function[tree.function >= 0])
    function = np.where(tree.function < 0, -1, np.searchsorted(used, tree.function))
    contexts = InlineContexts(
        np.where(site > 0, tree.parent, -1), site, np.zeros_like(site), function
    )
    node, index = np.append(table.node, -1)[row], np.append(table.index, 0)[row]
    return _Found(
        node.astype(np.int64), index.astype(np.int64), np.zeros(len(row), np.int64), contexts,
        tree.descriptors.names(used),
    )  # fmt: skip


def _rows(table: ProfileTable, contexts: InlineContexts, names: Sequence[str]) -> I64:
    """The row of each of the contexts in the profile, -1 for none."""
    c = table.contexts
    known = RowSums()
    outer = (c.parent + 1).astype(np.uint64)
    location = location_of(c.line, c.discriminator)
    known.add_rows(outer, location, c.name.astype(np.uint64), np.zeros_like(outer))
    numbers = {name: number for number, name in enumerate(table.names)}
    number = np.array([*(numbers.get(name, -1) for name in names), -1], np.int64)
    name = number[contexts.function]
    location = location_of(contexts.line, contexts.discriminator)
    found = np.full(len(name) + 1, -1)  # the last one: of no parent
    for level in levels(contexts.parent):
        parent = contexts.parent[level]
        rows = level[(name[level] >= 0) & ((parent < 0) | (found[parent] >= 0))]
        outer = (found[contexts.parent[rows]] + 1).astype(np.uint64)
        found[rows] = known.find_rows(outer, location[rows], name[rows].astype(np.uint64))
    return found[:-1]
