"""Instructions that a kernel changes while it runs, so that the file does not say what ran.

A static key is a jump that may be a no-op, or the other way round; alternatives put other
instructions in the place of some when the processor is known. Both are branches that may go on
(Linux: include/linux/jump_label.h, struct jump_entry; arch/*/include/asm/alternative.h, struct
alt_instr, whose first field is the place, relative to itself; v6.1). Calls that ftrace makes
no-ops end no fall-through, and need nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import Segment
from lbr2pgo.support.addresses import ImageAddresses, image_addresses, image_array
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.tables import ascending, table

_JUMP_ENTRY = np.dtype([("code", "<i4"), ("target", "<i4"), ("key", "<i8")])
_ALTERNATIVE_SIZES = (12, 14, 13)
"""AArch64 and x86-64 up to Linux 5.18; x86-64 from 6.3 on; in between."""


@table
class Patches:
    """Places of instructions (n,), ascending, and where static keys jump to."""

    address: ImageAddresses
    target: ImageAddresses
    has_target: Bools

    def __post_init__(self) -> None:
        ascending(self, "address")

    def applied(self, table: InstructionTable) -> InstructionTable:
        """The table with jumps at these places, and static keys' no-ops, as conditional jumps."""
        rows = table.index_of(self.address)
        there = rows >= 0
        kind = table.kind[rows]
        is_key = there & self.has_target & (kind == Kind.OTHER)
        changed = there & (kind == Kind.JUMP) | is_key
        if not changed.any():
            return table
        kinds, targets, has = table.kind.copy(), table.target.copy(), table.has_target.copy()
        kinds[rows[changed]] = Kind.COND
        targets[rows[is_key]], has[rows[is_key]] = self.target[is_key], True
        return replace(table, kind=kinds, target=image_addresses(targets), has_target=has)


def read_patches(image: Image) -> Patches:
    """Those that kernels and modules list; none of other files."""
    keys, targets = _static_keys(image)
    others = _alternatives(image)
    address = np.concatenate([keys, others])
    address, first = np.unique(address, return_index=True)  # a static key before an alternative
    has_target = first < len(keys)
    target = np.append(targets, np.zeros(len(others), np.uint64))[first]
    return Patches(image_addresses(address), image_addresses(target), has_target)


def _static_keys(image: Image) -> tuple[ImageAddresses, ImageAddresses]:
    section, content = image.section("__jump_table"), image.section_data("__jump_table")
    if not image.layout.anchors or section is None or content is None:
        return image_array(()), image_array(())
    rows = np.frombuffer(content, _JUMP_ENTRY, len(content) // _JUMP_ENTRY.itemsize)
    at = np.uint64(section.address) + np.arange(len(rows), dtype=np.uint64) * np.uint64(16)
    code = at + rows["code"].astype(np.int64).astype(np.uint64)
    target = at + np.uint64(4) + rows["target"].astype(np.int64).astype(np.uint64)
    return image_addresses(code), image_addresses(target)


def _alternatives(image: Image) -> ImageAddresses:
    section, content = image.section(".altinstructions"), image.section_data(".altinstructions")
    if not image.layout.anchors or section is None or not content:
        return image_array(())
    found = (_places(content, section.address, size) for size in _ALTERNATIVE_SIZES)
    code = [s for s in image.layout.segments if s.executable]
    return next((p for p in found if len(p) and _are_in(p, code)), image_array(()))


def _places(content: bytes, address: int, size: int) -> ImageAddresses:
    """Where entries of a size say that they are; nothing if the table does not consist of such."""
    count, rest = divmod(len(content), size)
    if rest:
        return image_array(())
    raw = np.frombuffer(content, np.uint8).reshape(count, size)[:, :4]
    offsets = np.ascontiguousarray(raw).view("<i4")[:, 0].astype(np.int64).astype(np.uint64)
    at = np.uint64(address) + np.arange(count, dtype=np.uint64) * np.uint64(size)
    return image_addresses(at + offsets)


def _are_in(places: ImageAddresses, segments: Sequence[Segment]) -> bool:
    inside = np.zeros(len(places), np.bool_)
    for segment in segments:
        inside |= (places >= segment.address) & (places < segment.end)
    return bool(inside.all())
