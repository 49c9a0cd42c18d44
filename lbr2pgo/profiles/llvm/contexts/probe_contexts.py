"""Samples of contexts by pseudo probe.

Counts of probes are added up, not the largest one taken; probes that did not run are listed with
zero where their function did; what was inlined tells its caller how often it was entered (LLVM:
tools/llvm-profgen/ProfileGenerator.cpp, CSProfileGenerator::generateProbeBasedProfile).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lbr2pgo.model.compat import OURS, SIZES_BY_DEBUG_NAMES, Compat
from lbr2pgo.model.context_counts import ContextCounts
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.profiles.llvm.contexts._contexts import INTO_UNKNOWN, CallPaths, ContextKeys
from lbr2pgo.profiles.llvm.contexts._preinliner import WAS_INLINED, FunctionSizes
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile, ContextSamples
from lbr2pgo.profiles.llvm.contexts.context_trees import Lost, cut_at, levels, outermost
from lbr2pgo.profiles.llvm.contexts.keys import MOST_FRAMES, ContextFrames, ContextShape
from lbr2pgo.profiles.llvm.contexts.probed_runs import ProbedRuns, ProbeSlots, probed_runs
from lbr2pgo.profiles.llvm.contexts.sizes import function_sizes, inlined_sizes
from lbr2pgo.profiles.llvm.contexts.tail_calls import TailCalls
from lbr2pgo.profiles.llvm.contexts.vtable_contexts import ContextLoads, ProbedLoads, probed_loads
from lbr2pgo.profiles.llvm.discriminators import probe_number
from lbr2pgo.profiles.llvm.entry_calls import entries_at
from lbr2pgo.profiles.llvm.lacks import Lack
from lbr2pgo.profiles.llvm.probe_functions import names_by_probes, probed_functions, probes_of
from lbr2pgo.profiles.llvm.probe_profile import is_probed
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.llvm.source_places import InlineContexts, places_of
from lbr2pgo.profiles.llvm.unprobed import lacks
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ENTRY_INDEX, InlineTree, ProbeKind
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import numbers_in

_AT_ONCE = 2048
"""Functions whose places are looked up together: those of all would take hundreds of megabytes."""


class ProbeContexts:
    """What ran in which context, by pseudo probe."""

    def __init__(
        self, counts: ContextCounts, program: Program, debug: DebugInfo, compat: Compat = OURS
    ) -> None:
        self._counts, self._program, self._debug = counts, program, debug
        runs, branches, symbols = counts.runs, counts.branches, program.probes.symbols
        sources = branches.from_[branches.has_source]
        touched = (runs.start, sources, branches.to, counts.callers.call[1:])
        self._touched = distinct(np.concatenate(touched))
        known = probed_functions(debug, symbols, self._touched)
        self._known, self._compat = known, compat
        table = probes_of(program.probes, known, self._touched, compat)
        calls = placed_addresses(np.append(sources, counts.callers.call[1:]))
        self._table = with_calls(table, calls, debug, compat)
        entry, named = entries_at(branches.to, symbols, known.functions, known.is_odd)
        is_called = np.isin(np.arange(len(named)), entry)
        self._names = _Names(self._table.tree)
        number = self._names.add(names_by_probes(named, is_called, known, self._table))
        self._callee = np.append(number, -1)[entry]

    @property
    def names(self) -> tuple[str, ...]:
        """All functions."""
        return tuple(self._names.numbers)

    def profile(
        self,
        shape: ContextShape | None = None,
        loads: ContextLoads | None = None,
        *,
        infers_calls: bool = False,
    ) -> ContextProfile:
        """Samples of all contexts.

        `infers_calls` tells callers of calls of what was inlined, if they have no samples.
        """
        ran, made = self._ran, self._made
        node, inline = (
            np.concatenate((ran.node, made.node)),
            np.concatenate((ran.inline, made.inline)),
        )
        function = np.concatenate((ran.function, made.function))
        keys, context = self._contexts(node, inline, function, shape or ContextShape())
        samples = ContextSamples(keys.contexts)
        if loads is not None:
            probed = probed_loads(loads, self._table, self._program, self._debug)
            self._add_loads(probed, node, inline, context, samples)
        samples.see(context)
        samples.mark(context, self._attributes(inline))
        if infers_calls:
            self._mark_callers(context, inline, samples)
        self._add_blocks(context[: len(ran.node)], ran, samples)
        self._add_calls(context[len(ran.node) :], made, samples)
        found = samples.profile(self.names, infers_calls=infers_calls, of_silent_alone=True)
        checksum = self._names.checksums()[found.table.contexts.name]
        return replace(found, table=replace(found.table, checksum=checksum))

    def _attributes(self, inline: I64) -> U8:
        is_inlined = self._table.tree.parent[inline] >= 0
        return np.where(is_inlined, WAS_INLINED, 0).astype(np.uint8)

    def _mark_callers(self, context: I64, inline: I64, samples: ContextSamples) -> None:
        """Mark what others were inlined into, which may have no samples of its own."""
        parent = self._table.tree.parent
        while len(context):
            context, first = np.unique(context, return_index=True)
            outer = parent[inline[first]].astype(np.int64)
            inline = outer[outer >= 0]
            context, _, _ = samples.called(context[outer >= 0])
            samples.mark(context, self._attributes(inline))

    def lost(self) -> Lost:
        """Runs that have no probes, or were called by calls without one.

        Start code, which is around all that a static program runs, is no caller that is lost: of
        other programs it is in another image.
        """
        runs, callers = self._counts.runs, self._counts.callers
        first, _ = self._table.at(runs.start)
        _, past = self._table.at(runs.end)
        named = np.cumsum(np.append(False, self._is_named[self._table.node]))
        nowhere = self._lacks(runs.start, named[first] == named[past])
        is_unknown = self._table.call_at(callers.call) < 0
        is_unknown[0] = False
        without = self._lacks(callers.call, is_unknown)
        if self._debug.present:
            without[outermost(callers, without == Lack.SOURCE)] = Lack.NOTHING
        node = cut_at(callers, without != Lack.NOTHING)[runs.node]
        return Lost(nowhere, without[node], callers.call[node])

    def _lacks(self, addresses: PlacedAddresses, is_lacking: Bools) -> U8:
        """`Lack` of those (n,) that lack a probe."""
        found = np.full(len(addresses), Lack.NOTHING, np.uint8)
        without = addresses[is_lacking]
        is_in_probed = is_probed(self._known.functions, self._table.address, without)
        found[is_lacking] = lacks(without, is_in_probed, self._debug, self._program.probes)
        return found

    def sizes(self) -> FunctionSizes:
        """How large the functions are; those of which only probes are left have no bytes."""
        functions = self._known.functions
        place = functions.containing(self._touched)
        touched = distinct(functions.function[place[place >= 0]].astype(np.int64))
        found, sizes = self._probed_functions(touched)
        for part in np.array_split(touched, len(touched) // _AT_ONCE + 1):
            inlined, size = self._sizes_of(part)
            found, sizes = _joined(inlined, found), np.concatenate((size, sizes))
        guids = np.array([guid(name) for name in self.names], np.uint64)
        return function_sizes(found, sizes, guids)

    def _sizes_of(self, numbers: I64) -> tuple[InlineContexts, I64]:
        """What was inlined into functions, and the bytes of each as `inlined_sizes` has them."""
        functions = self._known.functions
        is_asked = np.zeros(len(functions.names) + 1, np.bool_)  # the last one: of no function
        is_asked[numbers] = True
        code = self._program.instructions_once(functions.range_start[is_asked[functions.function]])
        owner = np.append(functions.function, -1)[functions.containing(code.address)]
        found, place = self._debug.places(code.address)
        places = places_of(found, is_fs=False)
        number = probe_number(places.calls.words)
        calls = replace(places.calls, line=number, discriminator=np.zeros_like(number))
        places = replace(places, calls=calls)
        inlined, size = inlined_sizes(places, np.where(is_asked[owner], place, -1), code.size)
        return replace(inlined, function=self._named(inlined, places.names)), size

    def _named(self, inlined: InlineContexts, names: Sequence[str]) -> I64:
        """The number of each one's name.

        Line tables (-g1) have short names where probes have those of the linker, which LLVM does
        not find then. What was inlined has no symbol to tell.
        """
        inner = self._names.add(names)[inlined.function]
        if self._compat.follows(SIZES_BY_DEBUG_NAMES):
            return inner
        by_probes = self._called_by_probes
        named = [by_probes.get(name, name) for name in names]
        outermost = self._names.add(named)[inlined.function]
        return np.where(inlined.parent < 0, outermost, inner)

    @cached_property
    def _called_by_probes(self) -> dict[str, str]:
        """What probes call functions that DWARF calls so."""
        described = self._known.functions.names
        is_called = np.ones(len(described), np.bool_)
        probed = names_by_probes(described, is_called, self._known, self._table)
        return dict(zip(described, probed, strict=True))

    def _probed_functions(self, touched: I64) -> tuple[InlineContexts, I64]:
        """Functions as probes nest them, and no bytes of those that have probes, else -1.

        LLVM looks for what was left of a function by the name that debug information has.
        """
        tree = self._table.tree
        has_probes = np.bincount(self._table.node, minlength=len(tree)) > 0
        if self._compat.follows(SIZES_BY_DEBUG_NAMES):
            described = self._known.functions.names
            number = self._names.add([described[each] for each in touched.tolist()])
            has_probes &= np.isin(self._names.of_node[tree.outermost()], number)
        zeros = np.zeros(len(tree), np.int64)
        nested = InlineContexts(
            tree.parent.astype(np.int64), tree.site.astype(np.int64), zeros, self._names.of_node
        )
        return nested, np.where(has_probes & self._is_named, 0, -1)

    # What was counted.

    @cached_property
    def _is_named(self) -> Bools:
        """Which functions of the tree, with all around them, have a descriptor."""
        tree = self._table.tree
        is_named = tree.function >= 0
        for rows in levels(tree.parent.astype(np.int64)):
            inner = rows[tree.parent[rows] >= 0]
            is_named[inner] &= is_named[tree.parent[inner]]
        return is_named

    @cached_property
    def _slots(self) -> ProbeSlots:
        return ProbeSlots.of(self._table)

    @cached_property
    def _ran(self) -> ProbedRuns:
        """Probes of blocks that ran, and those beside them."""
        table = self._table
        blocks = np.flatnonzero((table.kind == ProbeKind.BLOCK) & self._is_named[table.node])
        function = self._function_at(table.address[blocks])
        return probed_runs(self._counts.runs, table, blocks, function, self._slots)

    @cached_property
    def _made(self) -> _Made:
        """Call probes from which branches were taken."""
        branches, table = self._counts.branches, self._table
        row = np.where(branches.has_source, table.call_at(branches.from_), -1)
        rows = np.flatnonzero(row >= 0)
        rows = rows[self._is_named[table.node[row[rows]]]]
        row = row[rows]
        return _Made(
            branches.node[rows], table.node[row].astype(np.int64),
            self._function_at(table.address[row]), row, branches.count[rows], self._callee[rows],
        )  # fmt: skip

    # Contexts.

    def _contexts(
        self, node: I64, inline: I64, function: I64, shape: ContextShape
    ) -> tuple[ContextKeys, I64]:
        """The contexts of inlined functions (k,) in others, called from nodes: rows of the keys."""
        table, frames = self._table, ContextFrames()
        path = self._paths(node, function, shape)
        call = table.call_at(path.sites)
        around = np.append(table.node, -1).astype(np.int64)[call]
        around = np.where(np.append(self._is_named, False)[around], around, -1)
        index = np.append(table.index, 0).astype(np.int64)[call]
        name = np.append(self._names.of_node, 0)[around]
        frame = frames.number(name, location_of(index, np.zeros_like(index)))
        callers = np.stack((path.parent, around[path.site], frame[path.site]), axis=1)
        keys = ContextKeys(
            callers, self._inlined(frames), frames.rows(), MOST_FRAMES, shape.longest_repeat,
            shape.depth, True,
        )  # fmt: skip
        return keys, _numbered(keys.number, path.node, inline)

    def _inlined(self, frames: ContextFrames) -> I64:
        """Functions as `ContextKeys` wants them."""
        tree, of_node = self._table.tree, self._names.of_node
        outer = tree.parent.astype(np.int64)
        site = tree.site.astype(np.int64)
        frame = frames.number(of_node[outer], location_of(site, np.zeros_like(site)))
        outer[(outer >= 0) & (site == 0)] = INTO_UNKNOWN
        return np.stack((outer, frame, of_node), axis=1)

    def _paths(self, node: I64, function: I64, shape: ContextShape) -> _Paths:
        """The call stacks of nodes (k,), with what tail calls left out before a function."""
        callers = self._counts.callers
        inner = np.flatnonzero(callers.parent > 0)
        outer = np.concatenate((callers.parent[inner], node))
        above = np.concatenate((self._function_at(callers.call[inner]), function))
        pairs = RowIds()
        pairs.number_rows(callers.call[outer], above.astype(np.uint64))
        call, above, _ = pairs.rows().T
        gaps = self._tail_calls.gaps(placed_addresses(call.copy()), above.astype(np.int64))
        sites = distinct(np.concatenate((callers.call, gaps.jumps)))
        ids = RowIds()
        ids.number_rows(_places(sites, gaps.call), gaps.function.astype(np.uint64))
        found = CallPaths(
            np.stack((callers.parent, _places(sites, callers.call).view(np.int64)), axis=1),
            self._function_at(sites), ids, gaps.offsets,
            _places(sites, gaps.jumps).view(np.int64), MOST_FRAMES, shape.longest_repeat,
            shape.depth,
        )  # fmt: skip
        numbers = _numbered(found.number, node, function)
        parent, site, _ = found.nodes.rows().astype(np.int64).T
        parent[0] = -1
        return _Paths(numbers, parent, site, sites)

    @cached_property
    def _tail_calls(self) -> TailCalls:
        branches = self._counts.branches
        rows = np.flatnonzero(branches.has_source)
        source, target = branches.from_[rows], branches.to[rows]
        code = self._program.instructions_for(distinct(source))
        return TailCalls(source, target, self._known.functions, code)

    def _function_at(self, addresses: PlacedAddresses) -> I64:
        function = np.append(self._known.functions.function, -1).astype(np.int64)
        found: I64 = function[self._known.functions.containing(addresses)]
        return found

    # Samples.

    def _add_blocks(self, context: I64, ran: ProbedRuns, samples: ContextSamples) -> None:
        """Add probes of blocks; all others where these are, too, but with nothing."""
        slots = self._slots
        slot = numbers_in(slots.bounds[ran.inline], slots.bounds[ran.inline + 1])
        context = np.repeat(context, np.diff(ran.offsets))
        samples.lines.add(context, slots.location[slot], ran.sums)
        samples.add_totals(context, ran.sums)
        entered = np.flatnonzero((slots.index[slot] == ENTRY_INDEX) & (ran.sums > 0))
        self._add_entries(context[entered], slots.inline[slot[entered]], ran.sums[entered], samples)

    def _add_entries(self, context: I64, inline: I64, count: U64, samples: ContextSamples) -> None:
        """Add head samples; where a function was inlined, its caller knows of them as of a call."""
        samples.add_entries(context, count)
        inlined = np.flatnonzero(self._table.tree.parent[inline] >= 0)
        caller, location, callee = samples.called(context[inlined])
        known = np.flatnonzero(caller > 0)
        caller, location, count = caller[known], location[known], count[inlined[known]]
        samples.see(caller)
        samples.lines.add(caller, location, count)
        samples.lines.add_calls(caller, location, callee[known], count)
        samples.add_totals(caller, count)

    def _add_calls(self, context: I64, made: _Made, samples: ContextSamples) -> None:
        """Add branches from call probes; those to functions are calls."""
        index = self._table.index[made.row].astype(np.int64)
        samples.lines.add(context, location_of(index, np.zeros_like(index)), made.count)
        samples.add_totals(context, made.count)
        calls = np.flatnonzero(made.callee >= 0)
        samples.lines.add_calls(
            context[calls], self._location(made.row[calls]), made.callee[calls], made.count[calls]
        )

    def _add_loads(
        self, loads: ProbedLoads, node: I64, inline: I64, context: I64, samples: ContextSamples
    ) -> None:
        """Add virtual tables to the contexts of these functions (k,), where loads are of them."""
        ids, of_load = RowIds(), self._table.node[loads.probe].astype(np.uint64)
        known = ids.number_rows(node.astype(np.uint64), inline.astype(np.uint64))
        wanted = ids.number_rows(loads.rows.node.astype(np.uint64), of_load)
        context_of = np.zeros(len(ids), np.int64)  # 0 for none
        context_of[known] = context
        samples.add_loads(context_of[wanted], loads.location, loads.rows)

    def _location(self, row: I64) -> U64:
        table = self._table
        discriminator = table.discriminator[row].astype(np.int64)
        return location_of(table.index[row].astype(np.int64), discriminator)


@dataclass(frozen=True, slots=True)
class _Made:
    """Call probes from which branches were taken in calling contexts; columns of equal length."""

    node: I64
    inline: I64
    function: I64
    """As those of `ProbedRuns`."""
    row: I64
    """In the table of probes."""
    count: U64
    callee: I64
    """Function that was called from there, -1 for none."""


@dataclass(frozen=True, slots=True)
class _Paths:
    """Call stacks by address."""

    node: I64
    """(k,): of each that was asked for."""
    parent: I64
    """(n,): of each node, -1 for the root."""
    site: I64
    """(n,): the call, an index into `sites`."""
    sites: PlacedAddresses


class _Names:
    """Numbers the names of functions."""

    def __init__(self, tree: InlineTree) -> None:
        """Begin with those that have probes."""
        self.numbers: dict[str, int] = {}
        used = distinct(tree.function[tree.function >= 0])
        self._of_used = self.add(tree.descriptors.names(used))
        self.of_node = np.append(self._of_used, -1)[np.searchsorted(used, tree.function)]
        """The number of each of the tree's functions; of those without a descriptor any."""
        self._checksums = tree.descriptors.checksum[used]

    def add(self, names: Sequence[str]) -> I64:
        """The number of each."""
        return np.array([self.numbers.setdefault(n, len(self.numbers)) for n in names], np.int64)

    def checksums(self) -> U64:
        """Of each name, 0 for those without probes."""
        found = np.zeros(len(self.numbers), np.uint64)
        found[self._of_used] = self._checksums
        return found


def _numbered(number: Callable[[I64, I64], I64], first: I64, second: I64) -> I64:
    """What a function says of each pair, which it is asked once."""
    pairs = RowIds()
    rows = pairs.number_rows(first.astype(np.uint64), second.astype(np.uint64))
    first, second, _ = map(np.ascontiguousarray, pairs.rows().astype(np.int64).T)
    found: I64 = number(first, second)[rows]
    return found


def _places(sites: PlacedAddresses, addresses: PlacedAddresses) -> U64:
    return np.searchsorted(sites, addresses).astype(np.uint64)


def _joined(one: InlineContexts, other: InlineContexts) -> InlineContexts:
    """Two forests as one."""
    size = len(one.parent)
    parent = other.parent + size * (other.parent >= 0)
    return InlineContexts(
        np.concatenate((one.parent, parent)),
        np.concatenate((one.line, other.line)),
        np.concatenate((one.discriminator, other.discriminator)),
        np.concatenate((one.function, other.function)),
    )
