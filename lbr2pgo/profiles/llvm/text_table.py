"""LLVM's sample profile as text, written from columns; `llvm_text` describes the format.

Gives the bytes that `llvm_text.write` gives of the table's tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from lbr2pgo.profiles._profile_lines import (
    ATTRIBUTE_BYTES,
    BODY_BYTES,
    CALL_BYTES,
    CHECKSUM_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    BodyLines,
    CallerStacks,
    CallParts,
    ContextLines,
    ProfileLines,
)
from lbr2pgo.profiles.llvm._groups import depth_first, grouped, order_groups
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import inverse, order_of
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.intervals import offsets_of
from lbr2pgo.support.output import PathLike, write_pieces
from lbr2pgo.support.texts import Texts
from lbr2pgo.support.threads import made_of_each

if TYPE_CHECKING:
    from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile

_BYTES_AT_ONCE = 1 << 22


def write(profile: ProfileTable | ContextProfile, destination: PathLike | BinaryIO) -> None:
    """Write a profile to a path or a binary stream, line for line as LLVM does.

    Raises OutputError for a name that holds a line break.
    """
    pieces = _functions(profile) if isinstance(profile, ProfileTable) else _contexts(profile)
    write_pieces(destination, pieces)


def _functions(table: ProfileTable) -> Iterator[memoryview]:
    c, names = table.contexts, _names(table)
    most_first = np.where(c.parent < 0, ~c.total, np.uint64(0))
    order, depth = _writing_order(table, names, most_first)
    return _pieces(*_in_order(table, order, depth, names), names)


def _contexts(profile: ContextProfile) -> Iterator[memoryview]:
    """Each function in its calling context."""
    table, c = profile.table, profile.table.contexts
    names = _names(table)
    order, depth = _writing_order(table, names, np.zeros(len(c), np.uint64))
    rows = np.flatnonzero(profile.has_samples)
    rows = rows[order_of(~c.total[rows], inverse(order)[rows])]
    stacks = CallerStacks(
        rows, c.parent, c.line, c.discriminator, c.name, int(depth.max(initial=0))
    )
    attributed = replace(table, attributes=profile.attributes)
    parts = _in_order(attributed, rows, np.zeros(len(rows), np.int64), names)
    length = names.lengths()[c.name] + FRAME_BYTES
    for level in levels(c.parent):
        inner = level[c.parent[level] >= 0]
        length[inner] += length[c.parent[inner]]
    return _pieces(*parts, names, stacks, length[rows])


def _names(table: ProfileTable) -> Texts:
    names = Texts.of(table.names)
    if (broken := np.flatnonzero(names.holding(b"\n"))).size:
        name = names[int(broken[0])]
        raise OutputError(f"a text profile can't hold a name with a line break: {name!r}")
    return names


def _pieces(
    contexts: ContextLines,
    body: BodyLines,
    calls: CallParts,
    names: Texts,
    stacks: CallerStacks | None = None,
    stack_bytes: I64 | int = 0,
) -> Iterator[memoryview]:
    """The text, some megabytes at a time; `stack_bytes` are what stacks take at most."""
    bound = _bounds(contexts, body, calls, names, stack_bytes)

    def text(part: tuple[int, int]) -> memoryview:
        first, end = part
        out = np.empty(int(bound[end] - bound[first]), np.uint8)
        lines = ProfileLines(contexts, body, calls, names, stacks)
        return out[: lines.put(first, end, out)].data

    return made_of_each(text, pairwise(_parts(contexts.depth, bound)))


def _parts(depth: I64, bound: I64) -> list[int]:
    """Where to take contexts apart, so that some megabytes are written at once."""
    alone = np.flatnonzero(depth == 0)
    is_first = np.diff(bound[alone] // _BYTES_AT_ONCE, prepend=-1) > 0
    return [*alone[is_first].tolist(), len(depth)]


def _writing_order(table: ProfileTable, names: Texts, first: U64) -> tuple[I64, I64]:
    """Contexts in the order of the file, and how deep each of them is.

    Functions by `first` (n,), then by name; what is inlined follows its parent, by location, then
    by name.
    """
    c = table.contexts
    rows, bounds = grouped(c.parent + 1, len(c) + 1)
    order_groups(rows, bounds, first, location_of(c.line, c.discriminator), c.name, names)
    return depth_first(rows, bounds)


def _in_order(
    table: ProfileTable, order: I64, depth: I64, names: Texts
) -> tuple[ContextLines, BodyLines, CallParts]:
    """The columns in the order of the file, which may leave contexts without samples out."""
    c, b, t = table.contexts, table.body, table.calls
    place = np.zeros(len(c), np.int64)
    place[order] = np.arange(len(order))
    rows, body_of = grouped(place[b.context], len(order))
    calls, calls_of = grouped(inverse(rows)[t.row], len(rows))
    order_groups(calls, calls_of, ~t.count, np.zeros_like(t.count), t.callee, names)
    return (
        ContextLines(
            depth, c.line[order], c.discriminator[order], c.name[order],
            c.total[order], c.head[order], body_of,
            None if table.checksum is None else table.checksum[order],
            None if table.attributes is None else table.attributes[order],
        ),
        BodyLines(b.line[rows], b.discriminator[rows], b.count[rows], calls_of),
        CallParts(t.callee[calls], t.count[calls]),
    )  # fmt: skip


def _bounds(
    contexts: ContextLines, body: BodyLines, calls: CallParts, names: Texts,
    stack_bytes: I64 | int,
) -> I64:  # fmt: skip
    """How many bytes at most all contexts before each one take."""
    length = names.lengths()
    call_bytes = offsets_of(length[calls.callee] + CALL_BYTES)[body.calls]
    body_bytes = (call_bytes + BODY_BYTES * np.arange(len(body.calls)))[contexts.body]
    rows: I64 = np.diff(contexts.body)
    own = contexts.depth + length[contexts.name] + HEADER_BYTES + rows * (contexts.depth + 1)
    own += 2 * contexts.depth + CHECKSUM_BYTES + ATTRIBUTE_BYTES + stack_bytes
    bound: I64 = offsets_of(own) + body_bytes
    return bound
