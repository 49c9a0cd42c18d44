"""Arrays of addresses against an image's layout: what is code, and where file offsets lie."""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.addresses import FileOffsets, ImageAddress, ImageAddresses, image_addresses
from lbr2pgo.support.arrays import U64, Bools

_PAGE_MASK = ~0xFFF


def are_code(layout: ImageLayout, addresses: ImageAddresses) -> Bools:
    """Whether each image address, u64 of any shape, lies in an executable segment."""
    inside = np.zeros(addresses.shape, dtype=np.bool_)
    for segment in layout.segments:
        if segment.executable:
            inside |= _within(addresses, segment.address, segment.memory_size)
    return inside


def addresses_of_offsets(layout: ImageLayout, offsets: FileOffsets) -> tuple[ImageAddresses, Bools]:
    """Image addresses of file offsets, u64 of any shape, and which of them lie in code."""
    addresses = image_addresses(np.zeros_like(offsets))
    found = np.zeros(offsets.shape, dtype=np.bool_)
    for segment in layout.segments:
        if segment.executable:
            here = _within(offsets, segment.file_offset, segment.file_size) & ~found
            base = np.uint64((segment.address - segment.file_offset) % 2**64)
            addresses = np.where(here, offsets + base, addresses)
            found |= here
    return addresses, found


def text_base(layout: ImageLayout) -> ImageAddress:
    """What llvm-profgen counts its offsets from: the page of the first executable segment.

    LLVM: llvm/tools/llvm-profgen/ProfiledBinary.cpp setPreferredTextSegmentAddresses.
    """
    starts = [segment.address for segment in layout.segments if segment.executable]
    return ImageAddress(min(starts, default=0) & _PAGE_MASK)


def _within(values: U64, start: int, size: int) -> Bools:
    is_within: Bools = (values >= np.uint64(start)) & (values - np.uint64(start) < np.uint64(size))
    return is_within
