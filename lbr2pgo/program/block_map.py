"""Block maps: where clang's -fbasic-block-address-map says that each block of a function is.

Blocks have the numbers that they had in the compiler, which is what a later compile lays them out
by. Source: LLVM 22: lib/Object/ELF.cpp decodeBBAddrMapImpl, include/llvm/Object/ELFTypes.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from lbr2pgo.program import _block_map
from lbr2pgo.program.elf.debug_files import DebugFiles
from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.tables import same_length, seal

LANDING_PAD, INDIRECT_BRANCH = 4, 16
"""In a block's metadata: the unwinder may enter it, and it ends with an indirect branch."""
BUILD_CURE = "Build it with clang -fbasic-block-address-map (with LTO: link with it too)."
_WITH_VERSIONS, _WITHOUT = 0x6FFF4C0A, 0x6FFF4C08
"""SHT_LLVM_BB_ADDR_MAP, and SHT_LLVM_BB_ADDR_MAP_V0 of LLVM 12 to 14 (LLVM: BinaryFormat/ELF.h)."""


@dataclass(frozen=True)
class BlockMap:
    """Blocks of all functions that have a map, ordered by address; (b,) each.

    A block without instructions stands before the one at the same address.
    """

    function: I64
    """Number of its function, in the order of the section."""
    identity: I64
    """Its number in the compiler, unique in the function."""
    start: ImageAddresses
    size: U64
    metadata: U8
    """1 return, 2 tail call, 4 landing pad, 8 may fall through, 16 indirect branch."""
    hash: U64
    """0 where the compiler wrote none."""
    entry: ImageAddresses
    """(f,): where each function begins."""
    origin: str
    """The file that holds the map."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "function", "identity", "start", "size", "metadata", "hash")

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> ImageAddresses:
        """(b,): behind each block."""
        return image_addresses(self.start + self.size)

    @property
    def is_entry(self) -> Bools:
        """(b,): whether a function begins there: the first block at its address."""
        first = np.append(True, np.diff(self.start) != 0)[: len(self)]
        found: Bools = first & (self.start == self.entry[self.function])
        return found


def open_block_map(image: Image) -> BlockMap:
    """The map of a program, or of the debug file that was split off it.

    Raises InputError where there is none, where it is cut off, and for a version that is not known.
    """
    holder = DebugFiles(image).holder(has_block_map)
    if holder is None:
        cure = image.architecture.why_no_block_maps or BUILD_CURE
        raise InputError("the program has no block map", where=image.path, cure=cure)
    return _joined([*_tables(holder)], holder.path)


def has_block_map(image: Image) -> bool:
    """Whether a program says where its blocks are."""
    return any(section.size for section in _sections(image))


def _sections(image: Image) -> Iterator[Section]:
    kinds = (_WITH_VERSIONS, _WITHOUT)
    return (each for each in image.sections if each.type in kinds and image.holds(each))


def _tables(image: Image) -> Iterator[tuple[U64, U64]]:

    for section in _sections(image):
        data = np.frombuffer(image.unpacked(section) or b"", np.uint8)
        ranges, blocks, end = _block_map.read_block_map(data, section.type == _WITH_VERSIONS)
        if end[0] != _block_map.FINE:
            _refuse(end, f"{image.path}, {section.name}@{end[3]:#x}")
        yield ranges, blocks


def _refuse(end: Sequence[int], where: str) -> NoReturn:

    problem, version, feature, _ = end
    what = "the block map is cut off"
    if problem == _block_map.UNKNOWN_VERSION:
        what = f"block map of version {version}; those up to {_block_map.NEWEST} are known"
    elif problem == _block_map.UNKNOWN_FEATURE:
        what = f"block map with features {feature:#x}, some of which are not known"
    raise InputError(what, where=where, cure=BUILD_CURE)


def _joined(tables: list[tuple[U64, U64]], origin: str) -> BlockMap:
    """One map of those of all sections, with the functions numbered on."""
    functions, entries, blocks = 0, [np.empty(0, np.uint64)], [np.empty((0, 6), np.uint64)]
    for ranges, found in tables:
        first = np.flatnonzero(np.diff(ranges[:, 0].astype(np.int64), prepend=-1))
        entries.append(ranges[first, 1])
        found[:, 0] = ranges[found[:, 0].astype(np.int64), 0] + np.uint64(functions)
        blocks.append(found)
        functions += len(first)
    columns = np.concatenate(blocks)
    columns = columns[np.argsort(columns[:, 2], kind="stable")]
    return BlockMap(
        function=columns[:, 0].astype(np.int64),
        identity=columns[:, 1].astype(np.int64),
        start=image_addresses(columns[:, 2].copy()),
        size=columns[:, 5].copy(),
        metadata=columns[:, 3].astype(np.uint8),
        hash=columns[:, 4].copy(),
        entry=image_addresses(np.concatenate(entries)),
        origin=origin,
    )
