"""Counts of what is to be inlined anew, given to the function itself as well.

A compiler that reads a nested profile finds a callee's counts in its caller alone. Where it does
not inline it after all, since the callee lies in another source file or is called through a
pointer, the function that it does call would look as if it never ran, and be made small. What was
inlined in the recorded program can be inlined again; of what was not, nobody knows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.profiles.llvm.contexts._preinliner import WAS_INLINED
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_profile import DUPLICATED_INTO_BASE
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.intervals import numbers_in


def with_own_copies(profile: ContextProfile) -> ContextProfile:
    """The same, and what was not inlined in the recorded program stands alone besides.

    With all that is inlined into it. The nested one says so, and summaries leave it out (LLVM:
    ContextDuplicatedIntoBase; llvm-profgen gives all of them to their functions or none, by
    --generate-merged-base-profiles).
    """
    c, has_samples = profile.table.contexts, np.append(profile.has_samples, False)
    is_new = has_samples[:-1] & has_samples[c.parent] & (profile.attributes & WAS_INLINED == 0)
    original, parent = _subtrees(c.parent, profile.has_samples, np.flatnonzero(is_new))
    stands_alone = parent < 0
    attributes = profile.attributes | np.where(is_new, DUPLICATED_INTO_BASE, 0).astype(np.uint8)
    copied = np.where(stands_alone, 0, attributes[original]).astype(np.uint8)
    table = _copied(profile.table, original, np.where(stands_alone, -1, parent + len(c)))
    return replace(
        profile, table=table, attributes=np.concatenate((attributes, copied)),
        has_samples=np.concatenate((profile.has_samples, np.ones(len(original), np.bool_))),
    )  # fmt: skip


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
    return replace(table, contexts=contexts, body=body, calls=calls, checksum=checksum)
