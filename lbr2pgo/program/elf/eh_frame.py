"""Call frame information: functions as the unwinder knows them, landing pads, frame pointers.

Where functions and landing pads are, `.eh_frame` says, without its unwinding instructions. Those,
there and in `.debug_frame`, tell where the frame pointer does not point to the running function's
frame: before a prologue has set it, behind the epilogue that has given it back, and in functions
that have no frame. A call stack that was found by frame pointers lacks the innermost caller there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from lbr2pgo.program.elf import _eh_frame as native
from lbr2pgo.program.elf._call_frames import MADE, SAVED, frame_rows
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import U32, U64, Bools
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import ascending, table


@table
class FrameDescriptions:
    """Ranges that frame description entries cover, by start; one for each start."""

    start: ImageAddresses
    size: U64
    lsda: U64
    """Image address of the language-specific data area, 0 where there is none."""
    health: Mapping[str, int] = field(default_factory=dict)
    """What can't be used: a reason in words, and how many."""

    def __post_init__(self) -> None:
        ascending(self, "start")

    def lsda_of(self, starts: ImageAddresses) -> U64:
        """(n,): LSDA of the entry that starts at each address, 0 where there is none."""
        none = np.uint64(0)  # at -1
        return np.append(self.lsda, none)[place_of(starts, self.start)]


def read_frames(image: Image) -> FrameDescriptions:
    """All frame description entries of `.eh_frame`; none if there is no such section.

    Of several for one start the first in the file counts.
    """
    section = image.section(".eh_frame")
    view = image.section_view(".eh_frame")
    address = 0 if section is None else section.address
    data = np.frombuffer(view or b"", np.uint8)
    entries, damaged, end = native.read_entries(data, address)
    entries = entries[(entries[:, 0] > 0) & (entries[:, 1] > 0)]
    _, first = np.unique(entries[:, 0], return_index=True)
    start, size, lsda = np.ascontiguousarray(entries[first].T)
    health = {
        "entries of .eh_frame that make no sense": damaged,
        "bytes of .eh_frame behind an entry that is too long": len(data) - end,
    }
    return FrameDescriptions(start, size, lsda, {reason: n for reason, n in health.items() if n})


def landing_pads(image: Image, starts: ImageAddresses, sizes: U64, lsdas: U64) -> ImageAddresses:
    """Addresses where exceptions land in (n,) functions that have an LSDA, in no order."""
    pads = [np.zeros(0, np.uint64)]
    for section in (s for s in image.sections if s.is_alloc and s.address):
        inside = (lsdas >= np.uint64(section.address)) & (lsdas < np.uint64(section.end))
        if inside.any():
            data = np.frombuffer(image.contents(section) or b"", np.uint8)
            columns = (column[inside] for column in (starts, sizes, lsdas))
            pads.append(native.landing_pads(data, section.address, *columns))
            starts, sizes, lsdas = starts[~inside], sizes[~inside], lsdas[~inside]
    return image_addresses(np.concatenate(pads))


_ONE, _WORD = np.uint64(1), np.uint64(4)
_NEVER = ~np.uint64(0)


@table
class FrameRanges:
    """Half-open ranges of code that are described, by start; columns of equal length."""

    start: ImageAddresses
    end: ImageAddresses
    made: ImageAddresses
    """From here on the frame pointer points to the frame; may lie outside the range."""

    def __post_init__(self) -> None:
        ascending(self, "start")

    def lack_frame(self, addresses: PlacedAddresses) -> Bools:
        """(n,): where it is known not to point there; False where nothing is known."""
        at = interval_of(self.start, self.end, addresses)
        return addresses < np.append(self.made, np.uint64(0))[at]


def read_frame_ranges(image: Image) -> FrameRanges:
    """What both sections say; `.eh_frame` first, where they describe the same code."""
    rows = np.concatenate([_rows(image, ".eh_frame"), _rows(image, ".debug_frame")])
    rows = rows[rows[:, 0] > 0]
    _, first = np.unique(rows[:, 0], return_index=True)
    start, end, state, function = np.ascontiguousarray(rows[first].T)
    made = np.where(state == MADE, start, end)
    saved = np.flatnonzero(state == SAVED)
    made[saved] = _made_from(image, function[saved])
    return FrameRanges(start, end, made)


def _rows(image: Image, name: str) -> U64:
    section, view = image.section(name), image.section_view(name)
    address = 0 if section is None else section.address
    data = np.frombuffer(view or b"", np.uint8)
    register = image.architecture.frame_pointer
    return frame_rows(data, address, name == ".debug_frame", register)


def _made_from(image: Image, functions: ImageAddresses) -> U64:
    """What follows the first instruction behind each address that makes a frame."""
    found = np.append(_makers(image), _NEVER)
    return found[np.searchsorted(found, functions, side="right")]


def _makers(image: Image) -> U64:
    """Where the instructions end that make frames, ascending."""
    if image.architecture.makes_frame is None:
        return np.empty(0, np.uint64)
    mask, value = map(np.uint32, image.architecture.makes_frame)
    found = [np.empty(0, np.uint64)]
    for section in (s for s in image.sections if s.is_code):
        words: U32 = np.frombuffer((image.contents(section) or b"")[: section.size & ~3], "<u4")
        at = np.flatnonzero(words & mask == value).astype(np.uint64)
        found.append(np.uint64(section.address) + (at + _ONE) * _WORD)
    return np.sort(np.concatenate(found))
