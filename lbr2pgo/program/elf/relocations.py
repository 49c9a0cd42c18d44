"""Relocation tables: what the linker left to be done, and what it kept of what it did."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.intervals import last_at_or_below

SHT_RELA, SHT_RELR = 4, 19  # System V gABI
RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
RelaRows = npt.NDArray[np.void]

_POINTER_SIZE = 8
_BITMAPS_AT_ONCE = 1 << 14
_BLOCK_BITS = 20
"""Pointers in one block of 1 MB are read at once."""


def read_rela(image: Image, section: Section) -> RelaRows:
    """Relocations of a section, as rows of `RELA`."""
    view = image.contents(section) or b""
    return np.frombuffer(view, RELA, count=len(view) // RELA.itemsize)


def dynamic_relocations(image: Image, only: str | None = None) -> RelaRows:
    """Relocations that are left to the loader, of one section or of all; packed ones unpacked."""
    tables = [np.empty(0, RELA)]
    for section in image.sections:
        if only is not None and section.name != only:
            continue
        if section.type == SHT_RELA and section.is_alloc:
            tables.append(read_rela(image, section))
        elif section.type == SHT_RELR and section.is_alloc:
            tables.append(_read_relr(image, section))
    return np.concatenate(tables)


def relative_targets(image: Image, dynamic: RelaRows) -> ImageAddresses:
    """Addresses in the image that the loader will store somewhere."""
    rows = dynamic[dynamic["type"] == image.architecture.relocations.relative]
    return image_addresses(rows["addend"].astype(np.uint64))


def _read_relr(image: Image, section: Section) -> RelaRows:
    """Relative relocations as runs of bitmaps (System V gABI, "Relative Relocation Table").

    No more are read than the file has room for pointers, however many a damaged table may say.
    """
    content = image.contents(section) or b""
    words = np.frombuffer(content, "<u8", count=len(content) // _POINTER_SIZE)
    places = _places(words)[: image.file.size // _POINTER_SIZE]
    rows = np.zeros(len(places), RELA)
    rows["offset"] = places
    rows["type"] = image.architecture.relocations.relative
    rows["addend"] = _pointers_at(image, places)
    return rows


def _places(words: U64) -> U64:
    """Where to relocate: a word is a place, or, if it is odd, a bitmap of 63 places behind."""
    is_bitmap = (words & np.uint64(1)) == 1
    number = np.arange(len(words))
    latest = np.maximum.accumulate(np.where(is_bitmap, -1, number))
    start = np.where(latest < 0, np.uint64(0), words[latest] + np.uint64(_POINTER_SIZE))
    skipped = (number - latest - 1).astype(np.uint64) * np.uint64(63 * _POINTER_SIZE)
    parts = [words[:0]]
    for row in np.array_split(number, len(number) // _BITMAPS_AT_ONCE + 1):
        bits = np.unpackbits(words[row].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        is_place = bits.astype(np.bool_)
        is_place[:, 0] = ~is_bitmap[row]  # in place of the lowest bit, which says what the word is
        is_place[:, 1:] &= is_bitmap[row, np.newaxis]
        bit = np.arange(63, dtype=np.uint64) * np.uint64(_POINTER_SIZE)
        place = np.empty(is_place.shape, np.uint64)
        place[:, 0] = words[row]
        place[:, 1:] = (start[row] + skipped[row])[:, np.newaxis] + bit
        parts.append(place[is_place])
    return np.concatenate(parts)


def _pointers_at(image: Image, places: U64) -> I64:
    """(n,): what stands at each place; 0 where the image has nothing."""
    found = np.zeros(len(places), np.int64)
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.array([segment.address for segment in image.layout.segments], np.uint64)
    segment = last_at_or_below(starts, ordered)
    is_apart = (np.diff(segment) > 0) | (np.diff(ordered >> np.uint64(_BLOCK_BITS)) > 0)
    for rows in np.split(order, np.flatnonzero(is_apart) + 1) if len(order) else []:
        first, last = int(places[rows[0]]), int(places[rows[-1]])
        size = last - first + _POINTER_SIZE
        data = np.frombuffer(image.read(first, size).ljust(size, b"\0"), np.uint8)
        at = (places[rows] - np.uint64(first)).astype(np.int64)
        found[rows] = data[at[:, np.newaxis] + np.arange(_POINTER_SIZE)].view("<i8")[:, 0]
    return found
