"""Where in a program the frame pointer does not point to the running function's frame.

It does not before a prologue has set it, behind the epilogue that has given it back, and in
functions that have no frame. A call stack that was found by frame pointers lacks the innermost
caller there. Call frame information (`.eh_frame`, `.debug_frame`) tells these places apart.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.elf._call_frames import MADE, SAVED, frame_rows
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import U32, U64, Bools
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import ascending, table

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

    def lack_frame(self, addresses: ImageAddresses) -> Bools:
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
