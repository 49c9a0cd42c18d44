"""Contexts as a profile of functions, with what they are to inline nested into them.

A compiler that reads a nested profile finds a callee's counts in its caller alone. Where it does
not inline it after all, since the callee lies in another source file or is called through a
pointer, the function that it does call would look as if it never ran, and be made small. What was
inlined in the recorded program can be inlined again; of what was not, nobody knows: its function is
given the counts as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED, WAS_INLINED
from lbr2pgo.profiles.llvm.contexts.columns import LineColumns, line_and_discriminator, location_of
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_profile import DUPLICATED_INTO_BASE
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.sums import add_at

LEAST_SHARE = 0.002
"""Of all samples: copies with fewer make code larger and not faster (docs/notes/contexts.md)."""


def nested(profile: ContextProfile) -> ProfileTable:
    """What was called from a context with samples is inlined there; all else stands alone.

    LLVM: lib/ProfileData/SampleProf.cpp, ProfileConverter::convertCSProfiles.
    """
    table, c = profile.table, profile.table.contexts
    is_inlined = profile.is_inlined
    place, rows = _places(profile, is_inlined)
    line, discriminator = line_and_discriminator(rows[:, 1])
    lines, removed = _lines(table, place, is_inlined)
    total = _totals(c, is_inlined, removed)
    contexts = Contexts(
        parent=rows[:, 0].astype(np.int64) - 1,
        line=line,
        discriminator=discriminator,
        name=rows[:, 2].astype(np.int64),
        total=_sums(total, place, len(rows)),
        head=_sums(c.head, place, len(rows)),
    )
    body, calls = lines.columns()
    attributes = np.zeros(len(rows), np.uint8)
    known = np.flatnonzero(place >= 0)
    np.bitwise_or.at(attributes, place[known], profile.attributes[known])
    return replace(
        table, contexts=contexts, body=body, calls=calls, attributes=attributes,
        checksum=table.checksums_of(contexts.name), vtables=table.vtables_at(place),
    )  # fmt: skip


def _places(profile: ContextProfile, is_inlined: Bools) -> tuple[I64, U64]:
    """Where each context goes, -1 for those without samples; and all places, parents first.

    A place is a row (number of the place it is inlined into from 1 on or 0, location, name).
    """
    c = profile.table.contexts
    ids = RowIds()
    location = np.where(is_inlined, location_of(c.line, c.discriminator), np.uint64(0))
    place = np.full(len(c) + 1, -1)
    for level in levels(c.parent):
        rows = level[profile.has_samples[level]]
        outer = np.where(is_inlined[rows], place[c.parent[rows]] + 1, 0)
        columns = (outer.astype(np.uint64), location[rows], c.name[rows].astype(np.uint64))
        place[rows] = ids.number_rows(*columns)
    return place[:-1], ids.rows()


def _lines(table: ProfileTable, place: I64, is_inlined: Bools) -> tuple[LineColumns, U64]:
    """Lines and calls without those of what is inlined, and how much each context loses."""
    c, b, t = table.contexts, table.body, table.calls
    location = location_of(b.line, b.discriminator)
    is_gone = calls_of_nested(table, is_inlined)
    lost = np.zeros(len(b.context), np.uint64)
    add_at(lost, t.row[is_gone], t.count[is_gone])
    lost = np.minimum(lost, b.count)
    removed = np.zeros(len(c), np.uint64)
    add_at(removed, b.context, lost)
    has_nested = _has_nested(table, location, is_inlined)
    is_left = (place[b.context] >= 0) & ~(has_nested & (lost == b.count))
    lines = LineColumns()
    rows = np.flatnonzero(is_left)
    lines.add(place[b.context[rows]], location[rows], (b.count - lost)[rows])
    kept = np.flatnonzero(~is_gone & is_left[t.row])
    row = t.row[kept]
    lines.add_calls(place[b.context[row]], location[row], t.callee[kept], t.count[kept])
    return lines, removed


def calls_of_nested(table: ProfileTable, is_inlined: Bools) -> Bools:
    """Which calls are of functions that are inlined there."""
    c, b, t = table.contexts, table.body, table.calls
    location = location_of(b.line, b.discriminator)
    inner = np.flatnonzero(is_inlined)
    row = b.context[t.row]
    context = np.concatenate((c.parent[inner], row)).astype(np.uint64)
    at = np.concatenate((location_of(c.line, c.discriminator)[inner], location[t.row]))
    callee = np.concatenate((c.name[inner], t.callee)).astype(np.uint64)
    number = RowIds().number_rows(context, at, callee)
    is_nested: Bools = number[len(inner) :] < len(inner)
    return is_nested


def _has_nested(table: ProfileTable, location: U64, is_inlined: Bools) -> Bools:
    """Which lines have functions inlined into them."""
    c, b = table.contexts, table.body
    inner = np.flatnonzero(is_inlined)
    context = np.concatenate((c.parent[inner], b.context)).astype(np.uint64)
    at = np.concatenate((location_of(c.line, c.discriminator)[inner], location))
    ids = RowIds()
    number = ids.number_rows(context, at)
    distinct = int(number[: len(inner)].max(initial=-1)) + 1
    has_nested: Bools = number[len(inner) :] < distinct
    return has_nested


def _totals(c: Contexts, is_inlined: Bools, removed: U64) -> U64:
    """Totals with those of what is inlined, but without calls of it."""
    total = c.total.copy()
    for level in [*levels(c.parent)][::-1]:
        total[level] -= np.minimum(removed[level], total[level])
        inner = level[is_inlined[level]]
        add_at(total, c.parent[inner], total[inner])
    return total


def _sums(values: U64, place: I64, size: int) -> U64:
    total = np.zeros(size, np.uint64)
    known = np.flatnonzero(place >= 0)
    add_at(total, place[known], values[known])
    return total


def with_own_copies(profile: ContextProfile) -> ContextProfile:
    """The same, and what was not inlined in the recorded program stands alone besides.

    With all that is inlined into it. The nested one says so, and summaries leave it out (LLVM:
    ContextDuplicatedIntoBase; llvm-profgen gives all of them to their functions or none, by
    --generate-merged-base-profiles).
    """
    c = profile.table.contexts
    is_new = profile.is_inlined & (profile.attributes & WAS_INLINED == 0)
    original, parent = _subtrees(c.parent, profile.has_samples, np.flatnonzero(is_new))
    stands_alone = parent < 0
    attributes = profile.attributes | np.where(is_new, DUPLICATED_INTO_BASE, 0).astype(np.uint8)
    copied = np.where(stands_alone, 0, attributes[original]).astype(np.uint8)
    table = _copied(profile.table, original, np.where(stands_alone, -1, parent + len(c)))
    return replace(
        profile, table=table, attributes=np.concatenate((attributes, copied)),
        has_samples=np.concatenate((profile.has_samples, np.ones(len(original), np.bool_))),
    )  # fmt: skip


def with_thin_ones_unmarked(table: ProfileTable) -> ProfileTable:
    """The same, in which no nested function is to be inlined that has few samples.

    Its counts stay in its caller: the compiler, which knows what the call costs, decides.
    """
    assert table.attributes is not None
    c = table.contexts
    is_nested = c.parent >= 0
    is_thin = is_nested & (c.total < LEAST_SHARE * float(c.total[~is_nested].sum()))
    unmarked = table.attributes & np.uint8(~SHOULD_BE_INLINED & 0xFF)
    return replace(table, attributes=np.where(is_thin, unmarked, table.attributes))


def without_mere_callers(table: ProfileTable) -> ProfileTable:
    """The same less functions of which nothing is known but whom they call, as by one sample.

    clang would take such a function for one that is entered once, thus for cold code, with all that
    is inlined into it, whether there are samples of that or not (docs/notes/contexts.md).
    """
    c, b = table.contexts, table.body
    is_mere = (c.parent < 0) & (c.head == 0)
    is_mere[c.parent[c.parent >= 0]] = False
    is_mere[b.context[table.calls.of_rows(len(b.count)) < b.count]] = False
    return table.without(is_mere)


def _subtrees(parent: I64, has_samples: Bools, roots: I64) -> tuple[I64, I64]:
    """Rows at and below each root that have samples; and which of these is above it, or -1."""
    children = np.flatnonzero(has_samples & (parent >= 0))
    children = children[np.argsort(parent[children], kind="stable")]
    bounds = np.searchsorted(parent[children], np.arange(len(parent) + 1))
    found, above = [roots], [np.full(len(roots), -1, np.int64)]
    first, level = 0, roots
    while len(level):
        below = children[numbers_in(bounds[level], bounds[level + 1])]
        number = first + np.arange(len(level))
        above.append(np.repeat(number, bounds[level + 1] - bounds[level]))
        found.append(below)
        first, level = first + len(level), below
    return np.concatenate(found), np.concatenate(above)


def _copied(table: ProfileTable, original: I64, parent: I64) -> ProfileTable:
    """With copies of some contexts behind the others, under these parents."""
    c, b, t = table.contexts, table.body, table.calls
    stands_alone = parent < 0
    contexts = Contexts(
        np.concatenate((c.parent, parent)),
        np.concatenate((c.line, np.where(stands_alone, 0, c.line[original]))),
        np.concatenate((c.discriminator, np.where(stands_alone, 0, c.discriminator[original]))),
        np.concatenate((c.name, c.name[original])),
        np.concatenate((c.total, c.total[original])),
        np.concatenate((c.head, c.head[original])),
    )
    bounds = np.searchsorted(b.context, np.arange(len(c) + 1))  # lines are ordered by context
    rows = numbers_in(bounds[original], bounds[original + 1])
    owner = np.repeat(len(c) + np.arange(len(original)), np.diff(bounds)[original])
    body = Body(
        np.concatenate((b.context, owner)),
        np.concatenate((b.line, b.line[rows])),
        np.concatenate((b.discriminator, b.discriminator[rows])),
        np.concatenate((b.count, b.count[rows])),
    )
    by_row = np.argsort(t.row, kind="stable")
    bounds = np.searchsorted(t.row[by_row], np.arange(len(b.context) + 1))
    called = by_row[numbers_in(bounds[rows], bounds[rows + 1])]
    line = np.repeat(len(b.context) + np.arange(len(rows)), np.diff(bounds)[rows])
    calls = CallTargets(
        np.concatenate((t.row, line)),
        np.concatenate((t.callee, t.callee[called])),
        np.concatenate((t.count, t.count[called])),
    )
    checksum = table.checksum
    if checksum is not None:
        checksum = np.concatenate((checksum, checksum[original]))
    vtables = table.vtables and table.vtables.with_copies(original, len(c))
    return replace(
        table, contexts=contexts, body=body, calls=calls, checksum=checksum, vtables=vtables
    )
