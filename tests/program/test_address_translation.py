from __future__ import annotations

import random
from bisect import bisect_right
from itertools import pairwise

import numpy as np
import pytest
from builders.recordings import PIE
from builders.translations import Entry, Piece, note, random_pieces

from lbr2pgo.program.address_translation import (
    AddressTranslation,
    has_translation,
    open_translation,
    translation_of,
)
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import image_array
from lbr2pgo.support.errors import InputError


def test_a_program_that_bolt_did_not_make_has_none() -> None:
    assert not has_translation(Image.open(PIE))
    assert open_translation(Image.open(PIE)) is None


def test_pieces_are_ordered_by_address_and_keep_their_parents() -> None:
    pieces = [
        Piece(0x2000, [Entry(0, 0, 0, 7)], hash=9, blocks=4, entrances=(8,)),
        Piece(0x5000, [Entry(0, 0, 0)], blocks=1),
        Piece(0x3000, [Entry(0, 0x30, 2), Entry(4, 0x36)], parent=1),
    ]
    described = sorted(pieces, key=lambda piece: (piece.parent is not None, piece.address))
    found = translation_of(note(described), "program")
    assert found.address.tolist() == [0x2000, 0x3000, 0x5000]
    assert found.parent.tolist() == [0, 2, 2]
    assert found.piece.tolist() == [0, 1, 1, 2]
    assert found.is_branch.tolist() == [False, False, True, False]
    assert found.piece_at(image_array([0x3000, 0x3001])).tolist() == [1, -1]


def test_of_entries_at_one_offset_the_last_counts() -> None:
    entries = [Entry(0, 0, 0), Entry(4, 0x10, 1), Entry(4, 0x20, 2), Entry(8, 0x28)]
    found = translation_of(note([Piece(0x1000, entries)]), "program")
    asked = np.array([0, 3, 4, 7, 8, 11], np.uint64)
    piece = np.zeros(len(asked), np.int64)
    assert found.before(piece, asked, is_source=False).tolist() == [0, 3, 0x20, 0x23, 0x28, 0x2B]
    assert found.before(piece, asked, is_source=True).tolist() == [0, 0, 0x20, 0x20, 0x28, 0x28]


def plain(piece: Piece, offset: int, *, is_source: bool) -> int:
    entries = sorted(piece.entries, key=lambda entry: entry.output)
    at = bisect_right([entry.output for entry in entries], offset) - 1
    if at < 0:
        return offset
    return entries[at].input + (0 if is_source else offset - entries[at].output)


@pytest.mark.parametrize("seed", range(10))
def test_offsets_are_those_of_a_plain_search(seed: int) -> None:
    chance = random.Random(seed)
    pieces = random_pieces(chance, 6, 0)
    assert all(a.address < b.address for a, b in pairwise(pieces))
    found = translation_of(note(pieces), "program")
    asked = [(chance.randrange(6), chance.randrange(500)) for _ in range(300)]
    numbers = np.array([piece for piece, _ in asked])
    offsets = np.array([offset for _, offset in asked], np.uint64)
    for is_source in (False, True):
        wanted = [plain(pieces[p], o, is_source=is_source) for p, o in asked]
        assert found.before(numbers, offsets, is_source=is_source).tolist() == wanted


def test_without_a_translation_offsets_stay() -> None:
    nothing = AddressTranslation.empty()
    piece = nothing.piece_at(image_array([0x1000]))
    offset = np.array([5], np.uint64)
    assert nothing.before(piece, offset, is_source=False).tolist() == [5]


WHOLE = note([Piece(0x1000, [Entry(0, 0, 0), Entry(4, 9)])])
TWICE = note([Piece(0x1000, [Entry(0, 0, 0)]), Piece(0x1000, [Entry(0, 0, 0)])])


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (b"", "a form that is not known"),
        (WHOLE.replace(b"BOLT", b"GNU\0"), "a form that is not known"),
        (WHOLE[:8] + b"\2\0\0\0" + WHOLE[12:], "a form that is not known"),
        (WHOLE[:-1], "is cut off"),
        (WHOLE[:4] + b"\5\0\0\0" + WHOLE[8:], "is cut off"),
        (WHOLE[:4] + b"\x0c\0\0\0" + WHOLE[8:20] + b"\xff" * 12, "no function can have"),
        (TWICE, "two pieces at one address"),
    ],
    ids=["empty", "owner", "kind", "cut", "cut inside", "numbers", "twice"],
)
def test_damage_is_told_with_its_place_and_cure(section: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        translation_of(section, "program, .note.bolt_bat")
    assert caught.value.where.startswith("program, .note.bolt_bat")
    assert "llvm-bolt -enable-bat" in caught.value.cure
