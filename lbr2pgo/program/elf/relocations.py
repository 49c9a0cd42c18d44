"""Relocation tables: what the linker left to be done, and what it kept of what it did."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import U64

SHT_RELA, SHT_RELR = 4, 19  # System V gABI
RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
RelaRows = npt.NDArray[np.void]

_POINTER_SIZE = 8


def read_rela(image: Image, section: Section) -> RelaRows:
    """Relocations of a section, as rows of `RELA`."""
    view = image.contents(section) or memoryview(b"")
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


def relative_targets(image: Image, dynamic: RelaRows) -> U64:
    """Addresses in the image that the loader will store somewhere."""
    rows = dynamic[dynamic["type"] == image.architecture.relocations.relative]
    targets: U64 = rows["addend"].astype(np.uint64)
    return targets


def _read_relr(image: Image, section: Section) -> RelaRows:
    """Relative relocations as runs of bitmaps (System V gABI, "Relative Relocation Table").

    No more are read than the file has room for pointers, however many a damaged table may say.
    """
    most = image.file.size // _POINTER_SIZE
    content = image.contents(section) or memoryview(b"")
    words = np.frombuffer(content, "<u8", count=len(content) // 8)
    offsets: list[int] = []
    place = 0
    for word in words.tolist():
        if len(offsets) >= most:
            break
        if word & 1:
            bits = ((i, word >> (i + 1) & 1) for i in range(63))
            offsets += [place + i * _POINTER_SIZE for i, bit in bits if bit]
            place += 63 * _POINTER_SIZE
        else:
            offsets.append(word)
            place = word + _POINTER_SIZE
    rows = np.zeros(len(offsets), RELA)
    rows["offset"] = np.array(offsets, np.uint64)
    rows["type"] = image.architecture.relocations.relative
    rows["addend"] = [
        int.from_bytes(image.read(at, _POINTER_SIZE), "little", signed=True) for at in offsets
    ]
    return rows
