"""Samples of contexts by source line.

Not quite those of a profile without contexts (`correlate`): every instruction counts once in the
total, not once for each of its bytes; what did not run is not listed; callers count calls of what
was inlined into them (LLVM: tools/llvm-profgen/ProfileGenerator.cpp, CSProfileGenerator).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.model.compat import CALLERS_ALL_LOCATED, CONTEXTS_BY_WHOLE_WORDS, OURS, Compat
from lbr2pgo.model.context_counts import ContextBranches, ContextCounts, ContextRuns
from lbr2pgo.native.row_ids import RowIds, RowSums
from lbr2pgo.profiles.llvm.contexts._contexts import ContextKeys
from lbr2pgo.profiles.llvm.contexts._preinliner import WAS_INLINED, FunctionSizes
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile, ContextSamples
from lbr2pgo.profiles.llvm.contexts.context_trees import Lost, cut_at
from lbr2pgo.profiles.llvm.contexts.keys import (
    ContextShape,
    NamedContexts,
    context_names,
    line_keys,
)
from lbr2pgo.profiles.llvm.contexts.sizes import function_sizes, inlined_sizes
from lbr2pgo.profiles.llvm.contexts.vtable_contexts import ContextLoads
from lbr2pgo.profiles.llvm.correlate import uses_fs_discriminators
from lbr2pgo.profiles.llvm.entry_calls import entries_at
from lbr2pgo.profiles.llvm.lacks import Lack
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.llvm.source_places import (
    InlineContexts,
    PlacesOfLines,
    inline_contexts,
    places_of,
)
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import numbers_in


class LineContexts:
    """What ran in which context, by source line."""

    def __init__(
        self, counts: ContextCounts, program: Program, debug: DebugInfo, compat: Compat = OURS
    ) -> None:
        self._counts, self._program, self._compat = counts, program, compat
        runs, branches = counts.runs, counts.branches
        entered = distinct(np.concatenate((runs.start, branches.to)))
        left = np.concatenate((branches.from_[branches.has_source], counts.callers.call[1:]))
        self._functions = debug.functions_for(distinct(np.concatenate((entered, left))))
        self._source = self._located(debug)
        self._callee, self.names = self._callees()

    def profile(
        self,
        shape: ContextShape | None = None,
        loads: ContextLoads | None = None,
        *,
        infers_calls: bool = True,
    ) -> ContextProfile:
        """Samples of all contexts; `infers_calls` tells callers of calls of what was inlined."""
        finder = self._finder(shape or ContextShape())
        samples = ContextSamples(finder.keys.contexts)
        finder.add_runs(self._counts.runs, samples)
        finder.add_branches(self._counts.branches, self._callee, samples)
        if loads is not None:
            finder.add_loads(loads, samples)
        return samples.profile(
            self.names, is_fs=self._source.places.is_fs, infers_calls=infers_calls
        )

    def _finder(self, shape: ContextShape) -> _Finder:
        source, callers = self._source, self._counts.callers
        calls = source.place_at(callers.call)
        keys = line_keys(
            callers, calls, source.innermost, source.places, source.inlined, shape,
            is_cut=not self._compat.follows(CALLERS_ALL_LOCATED),
        )  # fmt: skip
        return _Finder(source, keys, self._compat)

    def named(self) -> NamedContexts:
        """What ran, cut where other inlined functions begin, in contexts called by lines."""
        finder = self._finder(ContextShape())
        runs, branches = finder.located_runs(self._counts.runs), self._counts.branches
        node = finder.contexts(branches.node, finder.inline_at(branches))
        names = context_names(finder.keys.contexts.rows(), self.names)
        return NamedContexts(names, runs, replace(branches, node=node))

    def lost(self) -> Lost:
        """Runs that have no source location, or were called by calls without one."""
        source, counts = self._source, self._counts
        before = np.concatenate(([0], np.cumsum(source.inline >= 0)))
        first, last = (source.code.index_of(side) for side in (counts.runs.start, counts.runs.end))
        is_nowhere = before[last + 1] == before[first]
        is_unknown = source.place_at(counts.callers.call) < 0
        node = cut_at(counts.callers, is_unknown)[counts.runs.node]
        nowhere, cut = (
            np.where(is_lacking, Lack.PLACE, Lack.NOTHING).astype(np.uint8)
            for is_lacking in (is_nowhere, node > 0)
        )
        return Lost(nowhere, cut, counts.callers.call[node])

    def sizes(self) -> FunctionSizes:
        """How large the functions are.

        llvm-profgen tells calls apart by whole discriminators here, and by their base elsewhere.
        """
        source = self._source
        places = source.places
        if self._compat.follows(CONTEXTS_BY_WHOLE_WORDS):
            calls = replace(places.calls, discriminator=places.calls.words)
            places = replace(places, calls=calls)
        place = np.where(source.is_profiled, source.place, -1)
        inlined, size = inlined_sizes(places, place, source.code.size)
        guids = np.array([guid(name) for name in self.names], np.uint64)
        return function_sizes(inlined, size, guids)

    def _located(self, debug: DebugInfo) -> _Source:
        functions, counts = self._functions, self._counts
        calls = counts.callers.call[1:]
        runs, branches = counts.runs, counts.branches
        sources = branches.from_[branches.has_source]
        named = np.concatenate((functions.range_start, runs.start, runs.end, sources, calls))
        code = self._program.instructions_for(distinct(named))
        is_profiled = self._is_profiled(code.address)
        is_wanted = is_profiled | np.isin(code.address, np.concatenate((calls, sources)))
        is_wanted |= _covered(code, runs)
        rows = np.flatnonzero(is_wanted)
        code = code.take(rows)
        found, place_of = debug.places(code.address)
        places = places_of(found, is_fs=uses_fs_discriminators(self._program))
        inlined, innermost = inline_contexts(places)
        inline = innermost[place_of]
        place = np.where(inline >= 0, place_of, -1)
        return _Source(code, is_profiled[rows], place, inline, places, inlined, innermost)

    def _is_profiled(self, addresses: PlacedAddresses) -> Bools:
        """(m,): which instructions are in functions that samples touched."""
        functions, counts = self._functions, self._counts
        branches = counts.branches
        touched = [counts.runs.start, branches.from_[branches.has_source], branches.to]
        if not self._compat.follows(CALLERS_ALL_LOCATED):
            touched.append(counts.callers.call[1:])
        place = functions.containing(np.concatenate(touched))
        is_touched = np.zeros(len(functions.names) + 1, np.bool_)
        is_touched[functions.function[place[place >= 0]]] = True
        function = np.append(functions.function, -1)[functions.containing(addresses)]
        profiled: Bools = is_touched[function]
        return profiled

    def _callees(self) -> tuple[I64, tuple[str, ...]]:
        """The function that each branch calls, -1 for none, and names of all functions."""
        entry, called = entries_at(self._counts.branches.to, self._program.symbols, self._functions)
        names = {name: number for number, name in enumerate(self._source.places.names)}
        number = np.array([names.setdefault(name, len(names)) for name in called], np.int64)
        return np.where(entry >= 0, np.append(number, -1)[entry], -1), tuple(names)


def _covered(code: InstructionTable, runs: ContextRuns) -> Bools:
    """(m,): which instructions ran."""
    started = np.bincount(code.index_of(runs.start), minlength=len(code))
    ended = np.bincount(code.index_of(runs.end) + 1, minlength=len(code) + 1)
    covered: Bools = np.cumsum(started) > np.cumsum(ended)[:-1]
    return covered


@dataclass(frozen=True, slots=True)
class _Source:
    """Instructions that the counts speak of, and where in the source they come from."""

    code: InstructionTable
    is_profiled: Bools
    """(m,): in functions that samples touched, of which all instructions are here."""
    place: I64
    """(m,): the place of each instruction, -1 where it has none."""
    inline: I64
    """(m,): the function inlined there, -1 likewise."""
    places: PlacesOfLines
    inlined: InlineContexts
    innermost: I64
    """(p,): the function inlined at each of the places, -1 likewise."""

    def place_at(self, addresses: PlacedAddresses) -> I64:
        """The place at each address, -1 where there is none."""
        row = self.code.index_of(addresses)
        place: I64 = np.append(self.place, -1)[row]
        return place


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the context of what ran, and adds it up."""

    source: _Source
    keys: ContextKeys
    compat: Compat

    def add_runs(self, runs: ContextRuns, samples: ContextSamples) -> None:
        """Add what ran: every instruction to the context of the function that it comes from."""
        source = self.source
        piece, first, last = self._pieces_of(runs)
        context = self.contexts(runs.node[piece], source.inline[first], samples)
        rows = np.flatnonzero(context > 0)
        ran = RowSums()
        ran.add_ranges(
            context[rows].astype(np.uint64), first[rows], last[rows], runs.count[piece[rows]]
        )
        context, row, _ = ran.rows().astype(np.int64).T
        place, count = source.place[row], ran.counts()
        known = np.flatnonzero(place >= 0)
        context, count, place = context[known], count[known], place[known]
        samples.add_totals(context, count)
        location = location_of(*source.places.location(place))
        samples.lines.add(*_largest(context, location, count * source.places.factor(place)))

    def located_runs(self, runs: ContextRuns) -> ContextRuns:
        """Runs cut where another inlined function begins; contexts in place of nodes, 0 for none.

        Pieces of several runs may be the same.
        """
        piece, first, last = self._pieces_of(runs)
        context = self.contexts(runs.node[piece], self.source.inline[first])
        address = self.source.code.address
        return ContextRuns(context, address[first], address[last], runs.count[piece])

    def _pieces_of(self, runs: ContextRuns) -> tuple[I64, I64, I64]:
        code = self.source.code
        first, last = code.index_of(runs.start), code.index_of(runs.end)
        return _pieces(first, last, self._begins_inlined())

    def _begins_inlined(self) -> Bools:
        """(m,): which instructions are in another inlined function than the one before them.

        llvm-profgen sees no difference between two functions that are inlined at one place
        (LLVM: ProfiledBinary::inlineContextEqual).
        """
        inline, inlined = self.source.inline, self.source.inlined
        what = inline[np.newaxis]
        if self.compat.follows(CONTEXTS_BY_WHOLE_WORDS):
            columns = (inlined.parent, inlined.line, inlined.discriminator)
            what = np.stack([np.append(column, -1)[inline] for column in columns])
        begins = np.ones(len(inline), np.bool_)
        begins[1:] = (what[:, 1:] != what[:, :-1]).any(axis=0)
        begins[1:] |= (inline[1:] < 0) | (inline[:-1] < 0)
        return begins

    def contexts(self, node: I64, inline: I64, samples: ContextSamples | None = None) -> I64:
        """The context of each inlined function (k,), called from a node; 0 for none.

        `samples` learn of them.
        """
        found = np.zeros(len(node), np.int64)
        known = np.flatnonzero(inline >= 0)
        pairs = RowIds()
        number = pairs.number_rows(node[known].astype(np.uint64), inline[known].astype(np.uint64))
        node, inline, _ = map(np.ascontiguousarray, pairs.rows().astype(np.int64).T)
        context = np.maximum(self.keys.number(node, inline), 0)
        if samples is not None:
            is_inlined = self.source.inlined.parent[inline] >= 0
            samples.see(context)
            samples.mark(context, np.where(is_inlined, WAS_INLINED, 0).astype(np.uint8))
        found[known] = context[number]
        return found

    def add_branches(self, branches: ContextBranches, callee: I64, samples: ContextSamples) -> None:
        """Add calls: targets in the caller, and head samples of the function called there."""
        source, places = self.source, self.source.places
        row = source.code.index_of(branches.from_)
        context = self.contexts(branches.node, self.inline_at(branches), samples)
        location = np.zeros(len(row), np.uint64)
        caller = np.flatnonzero((callee >= 0) & (context > 0))
        place = source.place[row[caller]]
        location[caller] = location_of(*places.location(place))
        samples.lines.add_calls(
            context[caller], location[caller], callee[caller], branches.count[caller]
        )
        if self.compat.follows(CONTEXTS_BY_WHOLE_WORDS):
            # llvm-profgen looks for the callee at the whole word that DWARF has there.
            line, _ = places.location(place)
            words = places.locations.words[place].astype(np.int64)
            location[caller] = location_of(line, words)
        calls = np.flatnonzero(callee >= 0)
        samples.add_heads(context[calls], location[calls], callee[calls], branches.count[calls])

    def add_loads(self, loads: ContextLoads, samples: ContextSamples) -> None:
        """Add virtual tables where instructions loaded from them, if those have a place."""
        source = self.source
        row = source.code.index_of(loads.ip)
        context = self.contexts(loads.node, source.inline[row])
        samples.add_loads(context, location_of(*source.places.location(source.place[row])), loads)

    def inline_at(self, branches: ContextBranches) -> I64:
        """The inlined function that each branch comes from, -1 for none."""
        row = self.source.code.index_of(branches.from_)
        inline: I64 = np.where(branches.has_source, np.append(self.source.inline, -1)[row], -1)
        return inline


def _pieces(first: I64, last: I64, begins: Bools) -> tuple[I64, I64, I64]:
    """Cut runs of instructions before those marked: the run of each piece, its first and last.

    >>> begins = np.array([True, False, False, True, False])
    >>> [column.tolist() for column in _pieces(np.array([1, 4]), np.array([3, 4]), begins)]
    [[0, 0, 1], [1, 3, 4], [2, 3, 4]]
    """
    cuts = np.flatnonzero(begins)
    low, high = np.searchsorted(cuts, first, "right"), np.searchsorted(cuts, last, "right")
    pieces = high - low + 1
    head = np.cumsum(pieces) - pieces
    is_head = np.zeros(int(pieces.sum()), np.bool_)
    is_head[head] = True
    start = np.empty(len(is_head), np.int64)
    start[is_head], start[~is_head] = first, cuts[numbers_in(low, high)]
    end = np.append(start[1:] - 1, 0)
    end[head + pieces - 1] = last
    return np.repeat(np.arange(len(first)), pieces), start, end


def _largest(context: I64, location: U64, count: U64) -> tuple[I64, U64, U64]:
    """Each context and location once, with the largest of its counts."""
    ids = RowIds()
    row = ids.number_rows(context.astype(np.uint64), location)
    largest = np.zeros(len(ids), np.uint64)
    np.maximum.at(largest, row, count)
    context, location, _ = ids.rows().T
    return context.astype(np.int64), location.copy(), largest
