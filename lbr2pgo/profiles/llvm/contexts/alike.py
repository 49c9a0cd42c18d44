"""Copies of functions that run as the function does everywhere, which say nothing of their callers.

A compiler that reads a profile inlines what that has nested before it simplifies code, callers
first. What it inlines by itself it inlines later, callees first, each of which is simple by then.
So what is small and has nothing of its own to tell is left to that: code is shorter, and faster in
most programs (docs/notes/contexts.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.contexts.columns import LineColumns, location_of
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile, raised
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.contexts.nesting import calls_of_nested
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.support.arrays import F64, I64, U64, Bools
from lbr2pgo.support.intervals import numbers_in, offsets_of
from lbr2pgo.support.sums import add_at

MOST_LOCATIONS = 20
"""That ran: with more, inlined ones included, it may be too large for the compiler to inline it."""
RARE = 0.01
"""Of a copy's entries: calls that are rarer don't keep the compiler from inlining it."""
_TOLERANCE = 0.05
"""Of how often a location runs in a call, beside what chance explains."""
_DEVIATIONS = 2.0


def with_alike_apart(profile: ContextProfile) -> ContextProfile:
    """The same, in which copies stand alone that run as their function does altogether.

    If they are small with all that is inlined into them, which has to be alike, too, and hardly
    call anything else: the compiler is slow to inline what calls in a circle. Their callers call
    them.
    """
    table, c = profile.table, profile.table.contexts
    is_inlined, entries = profile.is_inlined, _entries(profile)
    inlined = np.flatnonzero(is_inlined)
    told = _with_calls(table, inlined, entries[inlined])
    may_be = _small(table, is_inlined, is_inlined & ~_have_calls(table, is_inlined, entries))
    is_apart = _small(table, is_inlined, may_be & _run_alike(told, entries, may_be))
    apart = np.flatnonzero(is_apart)
    contexts = replace(c, parent=np.where(is_apart, -1, c.parent))
    table = replace(_with_calls(table, apart, entries[apart]), contexts=contexts)
    attributes = np.where(is_apart, np.uint8(0), profile.attributes)
    return replace(profile, table=table, attributes=attributes)


def _have_calls(table: ProfileTable, is_inlined: Bools, entries: U64) -> Bools:
    """(n,): which contexts call what is not inlined there, and not rarely."""
    calls, found = table.calls, np.zeros(len(table.contexts), np.bool_)
    caller = table.body.context[calls.row]
    stays = (calls.count > RARE * entries[caller]) & ~calls_of_nested(table, is_inlined)
    found[caller[stays]] = True
    return found


def _small(table: ProfileTable, is_inlined: Bools, may_be: Bools) -> Bools:
    """(n,): which of some contexts are small and have nothing else inlined into them."""
    parent, found = table.contexts.parent, may_be.copy()
    size = np.bincount(table.body.context[table.body.count > 0], minlength=len(found))
    for level in [*levels(parent)][::-1]:
        found[level] &= size[level] <= MOST_LOCATIONS
        inner = level[is_inlined[level]]
        np.add.at(size, parent[inner], size[inner])
        found[parent[inner[~found[inner]]]] = False
    return found


def _entries(profile: ContextProfile) -> U64:
    """(n,): how often each context was entered; zero where nothing tells."""
    c, b = profile.table.contexts, profile.table.body
    first = b.first_rows
    at_first = np.zeros(len(c), np.uint64)
    at_first[b.context[first]] = b.count[first]
    return np.where(profile.has_samples, np.maximum(c.head, at_first), np.uint64(0))


def _run_alike(table: ProfileTable, entries: U64, is_asked: Bools) -> Bools:
    """(n,): which of some contexts run each location as often in a call as their function does.

    And call each function there as often, which tells targets of calls through pointers apart.
    """
    name, names = table.contexts.name, len(table.names)
    context, location, callee, count = _places(table)
    own, of_all = RowSums(), RowSums()
    own.add_rows(context.astype(np.uint64), location, callee, count)
    of_all.add_rows(name[context].astype(np.uint64), location, callee, count)
    rows, counts = of_all.rows(), of_all.counts()
    function = rows[:, 0].astype(np.int64)
    by_function, sizes = np.argsort(function, kind="stable"), np.bincount(function, minlength=names)
    entered = np.zeros(names, np.uint64)
    add_at(entered, name, entries)
    is_alike = is_asked & (entries > 0)
    asked, offsets = np.flatnonzero(is_alike), offsets_of(sizes)
    context = np.repeat(asked, sizes[name[asked]])  # each place of its function, for each
    at = by_function[numbers_in(offsets[name[asked]], offsets[name[asked] + 1])]
    number = own.find_rows(context.astype(np.uint64), rows[at, 1], rows[at, 2])
    count = np.append(own.counts(), np.uint64(0))[number]
    differ = _differ(count, entries[context], counts[at], entered[name[context]])
    is_alike[context[differ]] = False
    return is_alike


def _places(table: ProfileTable) -> tuple[I64, U64, U64, U64]:
    """Contexts, locations, what is called from there or 0, and counts, of all lines and calls."""
    b, t = table.body, table.calls
    location, line = location_of(b.line, b.discriminator), np.zeros(len(b.context), np.uint64)
    return (
        np.concatenate((b.context, b.context[t.row])),
        np.concatenate((location, location[t.row])),
        np.concatenate((line, t.callee.astype(np.uint64) + np.uint64(1))),
        np.concatenate((b.count, t.count)),
    )


def _differ(count: U64, entries: U64, all_counts: U64, all_entries: U64) -> Bools:
    """Whether counts of so many calls are further from those of all calls than chance explains."""
    calls = entries.astype(np.float64)
    expected: F64 = all_counts / all_entries
    variance = np.maximum(expected, 1 / all_entries) / calls  # as of Poisson's counts
    tolerated = _TOLERANCE * np.maximum(expected, 1) + _DEVIATIONS * np.sqrt(variance)
    differ: Bools = np.abs(count / calls - expected) > tolerated
    return differ


def _with_calls(table: ProfileTable, contexts: I64, entries: U64) -> ProfileTable:
    """With the calls of some contexts by their callers, where these know of fewer."""
    c, b, t = table.contexts, table.body, table.calls
    location = location_of(b.line, b.discriminator)
    calls = RowSums()
    caller = b.context[t.row].astype(np.uint64)
    calls.add_rows(caller, location[t.row], t.callee.astype(np.uint64), t.count)
    parent, at = c.parent[contexts], location_of(c.line, c.discriminator)[contexts]
    number = calls.find_rows(parent.astype(np.uint64), at, c.name[contexts].astype(np.uint64))
    known = np.append(calls.counts(), np.uint64(0))[number]
    lines = LineColumns()
    lines.add(b.context, location, b.count)
    lines.add_calls(b.context[t.row], location[t.row], t.callee, t.count)
    more = np.flatnonzero(entries > known)
    lines.add_calls(parent[more], at[more], c.name[contexts][more], (entries - known)[more])
    body, targets = lines.columns()
    return replace(table, body=raised(body, targets), calls=targets)
