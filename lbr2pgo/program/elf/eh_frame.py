"""`.eh_frame`: which address ranges are functions to the unwinder, and where exceptions land.

Only what says where code is gets read, not the unwinding instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from lbr2pgo.program.elf import _eh_frame as native
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.distinct import place_of
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
