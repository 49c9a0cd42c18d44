"""LLVM's sample profile as text, written from columns; `llvm_text` describes the format.

Gives the bytes that `llvm_text.write` gives of the table's tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from lbr2pgo.native.profile_lines import (
    BODY_BYTES,
    CALL_BYTES,
    CHECKSUM_BYTES,
    HEADER_BYTES,
    BodyLines,
    CallParts,
    ContextLines,
    NameBytes,
    ProfileLines,
)
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.output import PathLike, write_to

_CONTEXTS_AT_ONCE = 1 << 12


def write(table: ProfileTable, destination: PathLike | BinaryIO) -> None:
    """Write a profile to a path or a binary stream, line for line as LLVM does.

    Raises OutputError for a name that holds a line break.
    """
    write_to(destination, lambda stream: stream.writelines(_pieces(table)))


def _pieces(table: ProfileTable) -> Iterator[memoryview]:
    """The text, some thousand contexts at a time."""
    encoded = [os.fsencode(name) for name in table.names]
    names = _name_bytes(encoded)
    rank = _ranks(encoded)
    order, depth = _writing_order(table, rank)
    contexts, body, calls = _in_order(table, order, depth, rank)
    bound = _bounds(contexts, body, calls, names)
    lines, out = ProfileLines(contexts, body, calls, names), np.empty(0, np.uint8)
    for first, end in pairwise(_parts(contexts.depth)):
        most = int(bound[end] - bound[first])
        if most > len(out):
            out = np.empty(most, np.uint8)
        yield out[: lines.put(first, end, out)].data


def _parts(depth: I64) -> list[int]:
    """Where to take contexts apart, so that some thousand are written at once."""
    alone = np.flatnonzero(depth == 0)
    is_first = np.diff(alone // _CONTEXTS_AT_ONCE, prepend=-1) > 0
    return [*alone[is_first].tolist(), len(depth)]


def _name_bytes(encoded: Sequence[bytes]) -> NameBytes:
    text = b"".join(encoded)
    if b"\n" in text:
        broken = next(name for name in encoded if b"\n" in name)
        raise OutputError(f"a text profile can't hold a name with a line break: {broken!r}")
    start = _offsets(np.array([len(name) for name in encoded], np.int64))
    return NameBytes(np.frombuffer(text, np.uint8), start)


def _ranks(encoded: Sequence[bytes]) -> I64:
    """The place of each name when they are sorted by their bytes."""
    rank = np.empty(len(encoded), np.int64)
    rank[sorted(range(len(encoded)), key=encoded.__getitem__)] = np.arange(len(encoded))
    return rank


def _offsets(lengths: I64 | U64) -> I64:
    """Where pieces of these lengths begin, end to end, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def _writing_order(table: ProfileTable, rank: I64) -> tuple[I64, I64]:
    """Contexts in the order of the file, and the depth of each, by its number.

    Functions with most samples first, then by name; what is inlined follows its parent, by
    location, then by name. A context's place is that of its parent, and one, and the sizes of
    the subtrees between the two.
    """
    c = table.contexts
    depth = table.depth()
    levels = [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=0)) + 1)]
    size = np.ones(len(c), np.int64)
    for rows in levels[:0:-1]:
        np.add.at(size, c.parent[rows], size[rows])
    fewest_first = np.where(c.parent < 0, ~c.total, np.uint64(0))
    siblings = np.lexsort((rank[c.name], c.discriminator, c.line, fewest_first, c.parent))
    before = np.empty(len(c), np.int64)
    before[siblings] = _since_first(size[siblings], c.parent[siblings])
    place = before
    for rows in levels[1:]:
        place[rows] += place[c.parent[rows]] + 1
    order = np.empty(len(c), np.int64)
    order[place] = np.arange(len(c))
    return order, depth


def _since_first(sizes: I64, group: I64) -> I64:
    """For each row the sum of the sizes before it in its group; groups stand together."""
    before = np.cumsum(sizes) - sizes
    is_first = np.diff(group, prepend=-2) != 0
    first: I64 = before[is_first][np.cumsum(is_first) - 1]
    return before - first


def _in_order(
    table: ProfileTable, order: I64, depth: I64, rank: I64
) -> tuple[ContextLines, BodyLines, CallParts]:
    """The columns in the order of the file."""
    c, b, t = table.contexts, table.body, table.calls
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.argsort(place[b.context], kind="stable")
    row_place = np.empty(len(rows), np.int64)
    row_place[rows] = np.arange(len(rows))
    calls = np.lexsort((rank[t.callee], ~t.count, row_place[t.row]))
    body_of = np.bincount(place[b.context], minlength=len(order))
    calls_of = np.bincount(row_place[t.row], minlength=len(rows))
    return (
        ContextLines(
            depth[order], c.line[order], c.discriminator[order], c.name[order],
            c.total[order], c.head[order], _offsets(body_of),
            None if table.checksum is None else table.checksum[order],
        ),
        BodyLines(b.line[rows], b.discriminator[rows], b.count[rows], _offsets(calls_of)),
        CallParts(t.callee[calls], t.count[calls]),
    )  # fmt: skip


def _bounds(contexts: ContextLines, body: BodyLines, calls: CallParts, names: NameBytes) -> I64:
    """How many bytes at most all contexts before each one take."""
    length: I64 = np.diff(names.start)
    call_bytes = _offsets(length[calls.callee] + CALL_BYTES)[body.calls]
    body_bytes = (call_bytes + BODY_BYTES * np.arange(len(body.calls)))[contexts.body]
    rows: I64 = np.diff(contexts.body)
    own = contexts.depth + length[contexts.name] + HEADER_BYTES + rows * (contexts.depth + 1)
    own += contexts.depth + CHECKSUM_BYTES
    bound: I64 = _offsets(own) + body_bytes
    return bound
