"""BOLT's address translation: where code that llvm-bolt -enable-bat moved stood before.

Functions come in pieces, since cold code is split off. Each piece has entries: offsets where a
block begins, or where a branch stands, with the offsets that they had in the function before.
Source: LLVM 22: bolt/lib/Profile/BoltAddressTranslation.cpp.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import ascending, same_length, seal

_SECTION = ".note.bolt_bat"
_KIND = 1
"""NT_BOLT_BAT (LLVM: bolt/include/bolt/Core/BinarySection.h)."""
_OWNER = b"BOLT\0"
_HEADER = 12
_OFFSET_BITS = np.uint64(32)
_CURE = "Make it again: llvm-bolt -enable-bat."


@dataclass(frozen=True)
class AddressTranslation:
    """Pieces of functions, by address (p,), and their entries (e,), by piece and offset.

    Entries at one offset, of blocks of which nothing is left, stand in BOLT's order: the last one
    is of what is there now.
    """

    address: ImageAddresses
    parent: I64
    """(p,): the piece that each one's function begins with; itself for these."""
    piece: I64
    """(e,)"""
    output: U64
    """(e,): offset in the piece."""
    input: U64
    """(e,): offset in the function before."""
    is_branch: Bools
    """(e,): whether a branch stands there; else a block begins."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "address", "parent")
        same_length(self, "piece", "output", "input", "is_branch")
        ascending(self, "address")

    @classmethod
    def empty(cls) -> AddressTranslation:
        """Of a program in which nothing was moved."""
        none, rows = np.empty(0, np.uint64), np.empty(0, np.int64)
        return cls(image_addresses(none), rows, rows, none, none, none.astype(np.bool_))

    def piece_at(self, addresses: ImageAddresses) -> I64:
        """(m,): the piece that begins at each address, -1 where none does."""
        return place_of(addresses, self.address)

    def entry_at(self, piece: I64, offset: U64, among: I64) -> I64:
        """(m,): index into the rows `among` of the last at or before an offset of a piece.

        -1 where there is none, or no piece (-1).
        """
        keys = _keys(self.piece[among], self.output[among])
        inside = np.minimum(offset, np.uint64(0xFFFFFFFF))
        at = last_at_or_below(keys, _keys(np.maximum(piece, 0), inside))
        held = at >= 0
        held[held] = self.piece[among][at[held]] == piece[held]
        return np.where(held & (piece >= 0), at, -1)

    def before(self, piece: I64, offset: U64, *, is_source: bool) -> U64:
        """(m,): offsets in the function before of offsets in pieces.

        The place of a branch (`is_source`) becomes that of its entry: what is in between may have
        changed. An offset that no entry covers stays what it is.
        """
        at = self.entry_at(piece, offset, np.arange(len(self.piece)))
        found, covered = offset.copy(), np.flatnonzero(at >= 0)
        entry = at[covered]
        skip = np.uint64(0) if is_source else offset[covered] - self.output[entry]
        found[covered] = self.input[entry] + skip
        return found


def _keys(piece: I64, offset: U64) -> U64:
    return piece.astype(np.uint64) << _OFFSET_BITS | offset


def has_translation(image: Image) -> bool:
    """Whether llvm-bolt left a translation in a program."""
    return image.section(_SECTION) is not None


def open_translation(image: Image) -> AddressTranslation | None:
    """The translation that llvm-bolt left in a program, None if it left none.

    Raises InputError where it is cut off or damaged.
    """
    section = image.section(_SECTION)
    if section is None:
        return None
    return translation_of(bytes(image.unpacked(section) or b""), f"{image.path}, {_SECTION}")


def translation_of(note: bytes, where: str) -> AddressTranslation:
    """The translation that a section's bytes hold; `where` is what errors call it.

    Raises InputError where it is cut off or damaged.
    """
    from lbr2pgo.program import _address_translation as native

    start, data = _described(note, where)
    pieces, entries, end = native.read_translation(data)
    if end[0] != native.FINE:
        why = "is cut off" if end[0] == native.CUT else "has offsets that no function can have"
        raise InputError(
            f"BOLT's address translation {why}", where=f"{where}@{start + end[1]:#x}", cure=_CURE
        )
    return _table(pieces, entries, where)


def _described(note: bytes, where: str) -> tuple[int, U8]:
    """Where the note's description begins, and the description (ELF: gABI, Note Section)."""
    words = np.frombuffer(note[:_HEADER].ljust(_HEADER, b"\0"), "<u4").tolist()
    start = _HEADER + -(-words[0] // 4) * 4
    is_known = words[2] == _KIND and note[_HEADER : _HEADER + len(_OWNER)] == _OWNER
    if not is_known or start + words[1] > len(note):
        what = "is cut off" if is_known else "is in a form that is not known"
        raise InputError(f"BOLT's address translation {what}", where=where, cure=_CURE)
    return start, np.frombuffer(note, np.uint8, words[1], start)


def _table(pieces: U64, entries: U64, where: str) -> AddressTranslation:
    order = np.argsort(pieces[:, 0], kind="stable")
    if len(np.unique(pieces[:, 0])) != len(pieces):
        raise InputError(
            "BOLT's address translation has two pieces at one address", where=where, cure=_CURE
        )
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    piece = place[entries[:, 0].astype(np.int64)]
    rows = np.argsort(_keys(piece, entries[:, 1]), kind="stable")
    kept = entries[rows]
    return AddressTranslation(
        address=image_addresses(pieces[order, 0].copy()),
        parent=place[pieces[order, 1].astype(np.int64)],
        piece=piece[rows],
        output=kept[:, 1].copy(),
        input=kept[:, 2].copy(),
        is_branch=kept[:, 3] != 0,
    )
