"""LLVM's sample profile as text, written from columns; `llvm_text` describes the format.

Gives the bytes that `llvm_text.write` gives of the table's tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
    NameBytes,
    ProfileLines,
)
from lbr2pgo.profiles.llvm.contexts.context_trees import levels
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.profiles.table_lines import name_bytes
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import order_of
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.intervals import offsets_of
from lbr2pgo.support.output import PathLike, write_pieces

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
    encoded, rank = _encoded(table)
    order = _writing_order(table, rank, fewest_first=np.where(
        table.contexts.parent < 0, ~table.contexts.total, np.uint64(0)
    ))  # fmt: skip
    parts = _in_order(table, order, table.depth(), rank)
    return _pieces(*parts, _name_bytes(encoded))


def _contexts(profile: ContextProfile) -> Iterator[memoryview]:
    """Each function in its calling context."""
    table, c = profile.table, profile.table.contexts
    encoded, rank = _encoded(table)
    depth = table.depth()
    place = np.empty(len(c), np.int64)
    place[_writing_order(table, rank)] = np.arange(len(c))
    rows = np.flatnonzero(profile.has_samples)
    rows = rows[order_of(~c.total[rows], place[rows])]
    stacks = CallerStacks(
        rows, c.parent, c.line, c.discriminator, c.name, int(depth.max(initial=0))
    )
    attributed = replace(table, attributes=profile.attributes)
    parts = _in_order(attributed, rows, np.zeros_like(depth), rank)
    length = np.array([*map(len, encoded)], np.int64)[c.name] + FRAME_BYTES
    for level in levels(c.parent):
        inner = level[c.parent[level] >= 0]
        length[inner] += length[c.parent[inner]]
    return _pieces(*parts, _name_bytes(encoded), stacks, length[rows])


def _encoded(table: ProfileTable) -> tuple[list[bytes], I64]:
    """All names in bytes, and the place of each when they are sorted by these."""
    encoded = [os.fsencode(name) for name in table.names]
    rank = np.empty(len(encoded), np.int64)
    rank[sorted(range(len(encoded)), key=encoded.__getitem__)] = np.arange(len(encoded))
    return encoded, rank


def _pieces(
    contexts: ContextLines,
    body: BodyLines,
    calls: CallParts,
    names: NameBytes,
    stacks: CallerStacks | None = None,
    stack_bytes: I64 | int = 0,
) -> Iterator[memoryview]:
    """The text, some megabytes at a time; `stack_bytes` are what stacks take at most."""
    bound = _bounds(contexts, body, calls, names, stack_bytes)
    lines, out = ProfileLines(contexts, body, calls, names, stacks), np.empty(0, np.uint8)
    for first, end in pairwise(_parts(contexts.depth, bound)):
        most = int(bound[end] - bound[first])
        if most > len(out):
            out = np.empty(most, np.uint8)
        yield out[: lines.put(first, end, out)].data


def _parts(depth: I64, bound: I64) -> list[int]:
    """Where to take contexts apart, so that some megabytes are written at once."""
    alone = np.flatnonzero(depth == 0)
    is_first = np.diff(bound[alone] // _BYTES_AT_ONCE, prepend=-1) > 0
    return [*alone[is_first].tolist(), len(depth)]


def _name_bytes(encoded: Sequence[bytes]) -> NameBytes:
    text = b"".join(encoded)
    if b"\n" in text:
        broken = next(name for name in encoded if b"\n" in name)
        raise OutputError(f"a text profile can't hold a name with a line break: {broken!r}")
    return name_bytes(encoded)


def _writing_order(table: ProfileTable, rank: I64, fewest_first: U64 | None = None) -> I64:
    """Contexts in the order of the file.

    Functions by `fewest_first` (n,), then by name; what is inlined follows its parent, by
    location, then by name. A context's place is that of its parent, and one, and the sizes of
    the subtrees between the two.
    """
    c = table.contexts
    by_depth = list(levels(c.parent))
    size = np.ones(len(c), np.int64)
    for rows in by_depth[:0:-1]:
        np.add.at(size, c.parent[rows], size[rows])
    first = np.zeros(len(c), np.uint64) if fewest_first is None else fewest_first
    siblings = order_of(c.parent, first, c.line, c.discriminator, rank[c.name])
    before = np.empty(len(c), np.int64)
    before[siblings] = _since_first(size[siblings], c.parent[siblings])
    place = before
    for rows in by_depth[1:]:
        place[rows] += place[c.parent[rows]] + 1
    order = np.empty(len(c), np.int64)
    order[place] = np.arange(len(c))
    return order


def _since_first(sizes: I64, group: I64) -> I64:
    """For each row the sum of the sizes before it in its group; groups stand together."""
    before = np.cumsum(sizes) - sizes
    is_first = np.diff(group, prepend=-2) != 0
    first: I64 = before[is_first][np.cumsum(is_first) - 1]
    return before - first


def _in_order(
    table: ProfileTable, order: I64, depth: I64, rank: I64
) -> tuple[ContextLines, BodyLines, CallParts]:
    """The columns in the order of the file, which may leave contexts without samples out."""
    c, b, t = table.contexts, table.body, table.calls
    place = np.zeros(len(c), np.int64)
    place[order] = np.arange(len(order))
    rows = np.argsort(place[b.context], kind="stable")
    row_place = np.empty(len(rows), np.int64)
    row_place[rows] = np.arange(len(rows))
    calls = order_of(row_place[t.row], ~t.count, rank[t.callee])
    body_of = np.bincount(place[b.context], minlength=len(order))
    calls_of = np.bincount(row_place[t.row], minlength=len(rows))
    return (
        ContextLines(
            depth[order], c.line[order], c.discriminator[order], c.name[order],
            c.total[order], c.head[order], offsets_of(body_of),
            None if table.checksum is None else table.checksum[order],
            None if table.attributes is None else table.attributes[order],
        ),
        BodyLines(b.line[rows], b.discriminator[rows], b.count[rows], offsets_of(calls_of)),
        CallParts(t.callee[calls], t.count[calls]),
    )  # fmt: skip


def _bounds(
    contexts: ContextLines, body: BodyLines, calls: CallParts, names: NameBytes,
    stack_bytes: I64 | int,
) -> I64:  # fmt: skip
    """How many bytes at most all contexts before each one take."""
    length: I64 = np.diff(names.start)
    call_bytes = offsets_of(length[calls.callee] + CALL_BYTES)[body.calls]
    body_bytes = (call_bytes + BODY_BYTES * np.arange(len(body.calls)))[contexts.body]
    rows: I64 = np.diff(contexts.body)
    own = contexts.depth + length[contexts.name] + HEADER_BYTES + rows * (contexts.depth + 1)
    own += 2 * contexts.depth + CHECKSUM_BYTES + ATTRIBUTE_BYTES + stack_bytes
    bound: I64 = offsets_of(own) + body_bytes
    return bound
