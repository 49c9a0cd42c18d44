"""Instructions of an image's code, decoded as its architecture has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.program.code.architecture import PADDING, Architecture, MachineCode
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ByteRanges, ImageAddress, ImageAddresses, image_addresses
from lbr2pgo.support.arrays import U8, U64, Bools
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.threads import made_of_each

if TYPE_CHECKING:
    import capstone

_AT_ONCE = 1 << 18
"""Bytes that a thread decodes together, about: it takes many times as much memory as code."""


def decode(image: Image, ranges: ByteRanges) -> InstructionTable:
    """Decode ranges, each by a linear sweep from its start.

    Bytes that are no instruction, and bytes that the file does not hold, leave a gap. Where
    ranges overlap, the one that starts first has the bytes.
    """
    return InstructionTable.joined(list(made_of_each(partial(_decoded, image), _parts(ranges))))


def _parts(ranges: ByteRanges) -> Iterator[ByteRanges]:
    """The ranges by their starts, cut where no range reaches over."""
    ordered = ranges.take(np.argsort(ranges.start, kind="stable"))
    reach = np.maximum.accumulate(ordered.end)
    size = np.cumsum(ordered.end - ordered.start) // np.uint64(_AT_ONCE)
    first = 0
    for cut in (np.flatnonzero(size[1:] > size[:-1]) + 1).tolist():
        if ordered.start[cut] >= reach[cut - 1]:
            yield ordered.take(np.arange(first, cut))
            first = cut
    yield ordered.take(np.arange(first, len(ordered)))


def _decoded(image: Image, ranges: ByteRanges) -> InstructionTable:
    code = _swept(image, ranges)
    flow = image.architecture.control_flow(code)
    return InstructionTable(code.address, code.size, flow.kind, flow.target, flow.has_target)


def _swept(image: Image, ranges: ByteRanges) -> MachineCode:
    data, bounds, starts = gather(image, ranges)
    offset, size = image.architecture.sweep(data, bounds)
    piece = last_at_or_below(np.array(bounds), offset)
    inside = (offset - np.array(bounds)[piece]).astype(np.uint64)
    return MachineCode(data, offset, size, image_addresses(starts[piece] + inside))


def are_slow(image: Image, code: InstructionTable) -> Bools:
    """(n,): which instructions take so long that what follows waits for them."""
    starts = begins(code.run)
    bounds = np.append(np.flatnonzero(starts), len(code))
    ranges = ByteRanges(code.address[bounds[:-1]], code.end_of(bounds[1:] - 1))
    data, offsets, _ = gather(image, ranges)
    run = np.cumsum(starts) - 1
    offset = np.array(offsets)[run] + (code.address - ranges.start[run]).astype(np.int64)
    return image.architecture.are_slow(MachineCode(data, offset, code.size, code.address))


_AHEAD = 512
"""Bytes that are disassembled at once."""


def text(image: Image, start: ImageAddress, end: int) -> Iterator[tuple[int, bytes, str]]:
    """Address, bytes and text of each instruction, in the syntax of the machine's objdump."""
    (lines,) = texts(image, ByteRanges.of([(start, end)]))
    return lines


def texts(image: Image, ranges: ByteRanges) -> Iterator[Iterator[tuple[int, bytes, str]]]:
    """As `text`, of each range; they don't overlap."""
    parts = [(code.address, code.size) for code in (_swept(image, p) for p in _parts(ranges))]
    address, size = map(np.concatenate, zip(*parts, strict=True))
    handle = image.architecture.disassembler()
    for start, end in zip(ranges.start.tolist(), ranges.end.tolist(), strict=True):
        rows = slice(*address.searchsorted(np.array([start, end], np.uint64)).tolist())
        places = zip(address[rows].tolist(), size[rows].tolist(), strict=True)
        yield _texts(image.architecture, handle, image.stored(start, end - start), start, places)


def _texts(
    architecture: Architecture, handle: capstone.Cs, stored: bytes, start: int,
    places: Iterable[tuple[int, int]],
) -> Iterator[tuple[int, bytes, str]]:  # fmt: skip
    ahead: Iterator[tuple[int, int, str, str]] = iter(())
    for place in places:
        address, size = place
        at = address - start
        code, found = stored[at : at + size], next(ahead, None)
        if found is None or found[:2] != place:
            ahead = handle.disasm_lite(stored[at : at + _AHEAD], address)
            found = next(ahead, None)
        if found is None or found[:2] != place:  # what it would make of these bytes alone
            found = next(handle.disasm_lite(code, address, 1), None)
        words = architecture.unknown(code) if found is None else " ".join(found[2:]).rstrip()
        yield address, code, words


def gather(image: Image, ranges: ByteRanges) -> tuple[U8, list[int], ImageAddresses]:
    """Bytes of all ranges with padding, the ranges' bounds in them, and their addresses."""
    ordered = ranges.take(np.argsort(ranges.start, kind="stable"))
    starts, ends = ordered.start, ordered.end
    taken = np.maximum.accumulate(ends)[:-1] if len(ends) else ends
    starts = np.concatenate([starts[:1], np.maximum(starts[1:], taken)])
    kept = starts < ends
    starts, sizes = starts[kept], (ends - starts)[kept]
    pieces = list(_stored(image, starts, starts + sizes))
    bounds = np.cumsum([0, *map(len, pieces)]).tolist()
    data = np.frombuffer(b"".join([*pieces, bytes(PADDING)]), np.uint8)
    return data, bounds, image_addresses(starts)


_NEAR, _TOGETHER = np.uint64(1 << 12), np.uint64(1 << 20)
"""Bytes between ranges that are read along, as many as another reading costs; and about how many
are read at once."""


def _stored(image: Image, starts: U64, ends: U64) -> Iterator[bytes]:
    """What the file holds of ranges, which ascend and are disjoint."""
    is_near = (starts[1:] - ends[:-1] < _NEAR) & (
        starts[1:] // _TOGETHER == starts[:-1] // _TOGETHER
    )
    for rows in np.split(np.arange(len(starts)), np.flatnonzero(~is_near) + 1):
        ranges = list(zip(starts[rows].tolist(), ends[rows].tolist(), strict=True))
        if not ranges:
            return
        first, past = ranges[0][0], ranges[-1][1]
        data = image.stored(first, past - first)
        if len(data) < past - first:  # a segment ends there, or its part in the file
            yield from (image.stored(start, end - start) for start, end in ranges)
        else:
            yield from (data[start - first : end - first] for start, end in ranges)
