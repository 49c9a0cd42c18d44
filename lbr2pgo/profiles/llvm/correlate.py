"""From counted instructions to an LLVM sample profile, with LLVM's own definitions.

What `llvm-profgen` computes (LLVM: tools/llvm-profgen/ProfileGenerator.cpp), in arrays:

* A *context* is a function, or a function inlined at a location of another context.
* Each instruction adds its count, times its size in bytes, to the total of every context that
  it was inlined through.
* A location (line minus the function's first line, and base discriminator) of a context has the
  largest count among its instructions, times the duplication factor of each.
* Instructions of a function that ran are listed even where they did not: zero says "cold".
* A branch to a function's entry is a call: a target at the branch's location, and head samples
  of the callee.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.counted_code import CountedCode, counted_code, located, starts
from lbr2pgo.profiles.llvm.entry_calls import EntryCalls, calls_to_entries
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.source_places import (
    InlineContexts,
    PlacesOfLines,
    inline_contexts,
    places_of,
)
from lbr2pgo.profiles.llvm.symbol_names import outermost_by
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.dwarf.function import DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, distinct, distinct_rows
from lbr2pgo.support.sums import add_at, multiplied, sums_at, sums_of_groups

_FS_DISCRIMINATOR_MARK = "__llvm_fs_discriminator__"


def sample_profile(
    flow: Flow, program: Program, debug: DebugInfo, compat: Compat = OURS
) -> tuple[SampleProfile, Bools]:
    """As `profile_table`, with the profile as a tree."""
    table, is_located = profile_table(flow, program, debug, compat)
    return table.tree(), is_located


def profile_table(
    flow: Flow,
    program: Program,
    debug: DebugInfo,
    compat: Compat = OURS,
    *,
    for_gcc: DwarfFunctions | None = None,
) -> tuple[ProfileTable, Bools]:
    """The sample profile of a replayed recording, in columns.

    Also returns, for each fall-through of `flow.judged`, whether its code has source locations.
    `for_gcc` are the
    functions by GCC's names; discriminators are whole then, and calls don't raise the count of
    their location.
    """
    functions = debug.functions_for(starts(flow)) if for_gcc is None else for_gcc
    calls = calls_to_entries(flow, program.symbols, functions, compat=compat)
    code = counted_code(flow, program, functions, calls)
    is_fs = for_gcc is not None or uses_fs_discriminators(program)
    found, place_of = debug.places(code.address)
    debug.release()
    if for_gcc is not None:
        found = outermost_by(found, functions, code.address, place_of)
    places = places_of(found, is_fs=is_fs)
    table = _table(_executed(code, place_of), places, _placed(calls, code, place_of))
    if for_gcc is None:
        table.raise_to_calls()
    table = table.without_ambiguous().with_used_names()
    is_located = places.scope[place_of] >= 0
    return replace(table, is_fs=is_fs), located(flow, code.address[is_located])


def uses_fs_discriminators(program: Program) -> bool:
    """Whether the binary's discriminators are flow-sensitive, which are not packed."""
    symbols, mark = program.symbols, _FS_DISCRIMINATOR_MARK
    # Hardly any program has it, and to look for one name lists all.
    return mark.encode() in symbols.names.table and symbols.by_name(mark) is not None


@dataclass(frozen=True, slots=True)
class _Executed:
    """What ran at places in the source: see `CountedCode`, whose instructions are added up."""

    weight: U64
    count: U64
    """The largest one."""
    is_body: Bools


def _executed(code: CountedCode, place: I64) -> _Executed:
    """Instructions of a place stand together."""
    first = np.flatnonzero(np.diff(place, prepend=-1))
    if not len(first):
        return _Executed(code.weight(), code.count, code.is_body)
    return _Executed(
        weight=sums_of_groups(code.weight(), first),
        count=np.maximum.reduceat(code.count, first),
        is_body=np.logical_or.reduceat(code.is_body, first),
    )


@dataclass(frozen=True, slots=True)
class _PlacedCalls:
    """Calls and the place of those that are made from one, -1 for others; columns of one length."""

    place: I64
    callee: I64
    count: U64
    names: tuple[str, ...]


def _placed(calls: EntryCalls, code: CountedCode, place_of: I64) -> _PlacedCalls:
    place = np.full(len(calls.source), -1)
    row = np.searchsorted(code.address, calls.source[calls.has_source])
    place[calls.has_source] = place_of[row]
    called, callee = np.unique(calls.callee, return_inverse=True)  # of all functions, a few
    names = tuple(calls.names[i] for i in called.tolist())
    return _PlacedCalls(place, callee, calls.count, names)


def _table(executed: _Executed, places: PlacesOfLines, calls: _PlacedCalls) -> ProfileTable:
    names = {name: number for number, name in enumerate(places.names)}
    callees = np.array([names.setdefault(name, len(names)) for name in calls.names], np.int64)
    calls = replace(calls, callee=callees[calls.callee], names=tuple(names))
    contexts, innermost = inline_contexts(places)
    body, targets = _body(executed, places, innermost, calls)
    made = _with_heads(_with_totals(executed, contexts, innermost), calls)
    return ProfileTable(calls.names, made, body, targets)


def _with_totals(executed: _Executed, contexts: InlineContexts, innermost: I64) -> Contexts:
    totals = np.zeros(len(contexts.parent), dtype=np.uint64)
    known = innermost >= 0
    add_at(totals, innermost[known], executed.weight[known])
    for rows in list(levels(contexts.parent))[:0:-1]:
        add_at(totals, contexts.parent[rows], totals[rows])
    return Contexts(
        parent=contexts.parent,
        line=contexts.line,
        discriminator=contexts.discriminator,
        name=contexts.function,
        total=totals,
        head=np.zeros_like(totals),
    )


def _with_heads(contexts: Contexts, calls: _PlacedCalls) -> Contexts:
    """The same with what called functions got; those of which nothing ran are added."""
    is_alone = contexts.parent < 0
    alone, called = contexts.name[is_alone], distinct(calls.callee)
    added = called[~among(called, np.sort(alone))]
    zeros = np.zeros(len(added), np.int64)
    place = np.full(len(calls.names), -1)
    place[alone] = np.flatnonzero(is_alone)
    place[added] = len(contexts) + np.arange(len(added))
    head = np.concatenate((contexts.head, zeros.astype(np.uint64)))
    np.add.at(head, place[calls.callee], calls.count)
    return Contexts(
        parent=np.concatenate((contexts.parent, zeros - 1)),
        line=np.concatenate((contexts.line, zeros)),
        discriminator=np.concatenate((contexts.discriminator, zeros)),
        name=np.concatenate((contexts.name, added)),
        total=np.concatenate((contexts.total, zeros.astype(np.uint64))),
        head=head,
    )


def _body(
    executed: _Executed, places: PlacesOfLines, innermost: I64, calls: _PlacedCalls
) -> tuple[Body, CallTargets]:
    """Counts of locations, and the calls from them; a location that only calls has a zero."""
    is_known = calls.place >= 0
    is_known[is_known] = innermost[calls.place[is_known]] >= 0
    bodies = np.flatnonzero(executed.is_body & (innermost >= 0))
    rows = np.concatenate((bodies, calls.place[is_known]))
    value = multiplied(executed.count[rows], places.factor(rows))
    value[len(bodies) :] = 0
    columns = (innermost[rows], *places.location(rows))
    first, row = distinct_rows(*columns)
    count = np.zeros(len(first), np.uint64)
    np.maximum.at(count, row, value)
    callee = calls.callee[is_known]
    first_call, call = distinct_rows(row[len(bodies) :], callee)
    called = sums_at(call, calls.count[is_known], len(first_call))
    context, line, discriminator = (column[first] for column in columns)
    targets = CallTargets(row[len(bodies) :][first_call], callee[first_call], called)
    return Body(context, line, discriminator, count), targets
