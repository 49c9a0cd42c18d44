"""Lengths of x86-64 instructions, against capstone's."""

from __future__ import annotations

import capstone
import numpy as np
import pytest
from builders.recordings import TESTBINS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbr2pgo.program.code._x86_lengths import known_lengths
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.elf.image import Image

PADDING, LONGEST = 16, 15
DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)

prefixes = st.lists(st.sampled_from((0x66, 0x67, 0xF0, 0xF2, 0xF3, 0x2E, 0x64)), max_size=4)
rex = st.sampled_from((b"", b"", *(bytes([byte]) for byte in range(0x40, 0x50))))
escapes = st.one_of(
    st.sampled_from((b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a")),
    st.binary(min_size=1, max_size=1).map(lambda rest: b"\xc5" + rest),
    st.binary(min_size=2, max_size=2).map(lambda rest: b"\xc4" + rest),
    st.binary(min_size=3, max_size=3).map(lambda rest: b"\x62" + rest),
)
instructions = st.builds(
    lambda first, wide, escape, rest: (bytes(first) + wide + escape + rest)[:LONGEST],
    prefixes, rex, escapes, st.binary(min_size=LONGEST, max_size=LONGEST),
)  # fmt: skip


def known(*pieces: bytes, room: int = 99) -> tuple[int, int, list[int]]:
    """Where the lengths of some pieces are not sure any more, and those before."""
    data = np.frombuffer(b"".join((*pieces, bytes(PADDING))), np.uint8)
    bounds = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    sizes = np.zeros(room, np.int16)
    piece, at, count = known_lengths(data, bounds, 0, 0, sizes)
    return piece, at, sizes[:count].tolist()


@settings(max_examples=3000, deadline=None)
@given(instructions)
@example(bytes.fromhex("f036f0f0f2f3674a0fc98db81d72fa"))  # lock in front of bswap
@example(bytes.fromhex("0f0f8f3ce355dbb752242442f5ad40"))  # 3DNow: the opcode comes last
@example(bytes.fromhex("3664f34a0f77bc7d433c98cc80a5d9"))  # emms behind f3
def test_a_length_that_is_sure_is_capstones(code: bytes) -> None:
    _, _, sizes = known(code)
    found = next(DISASSEMBLER.disasm_lite(code, 0, 1), None)
    if sizes and found and found[2] != "ud1":  # which capstone cuts short
        assert sizes[0] == found[1]


@pytest.mark.parametrize("name", ["x86-64/interp.pie", "x86-64/shapes.pie"])
def test_what_compilers_write_is_sure(name: str) -> None:
    image = Image.open(TESTBINS / name)
    ranges = code_ranges(image)
    table = decode(image, ranges)
    for start, end in ranges.pairs():
        piece, _, sizes = known(bytes(image.stored(start, end - start)), room=len(table))
        assert piece == 1
        assert sizes == table.size[(table.address >= start) & (table.address < end)].tolist()


def test_it_stops_at_what_is_no_instruction() -> None:
    assert known(b"\x90\x06\x90") == (0, 1, [1])


def test_no_instruction_runs_over_a_pieces_end() -> None:
    assert known(b"\x90\xe8\x00", b"\x00\x00\x00\x90") == (0, 1, [1])


def test_it_goes_on_in_the_next_piece() -> None:
    assert known(b"\x90", b"", b"\x48\x89\xc0") == (3, 4, [1, 3])


def test_it_stops_where_there_is_no_room() -> None:
    assert known(b"\x90\x90", b"\x90\x90", room=3) == (1, 3, [1, 1, 1])


def test_more_prefixes_than_fit_are_not_sure() -> None:
    assert known(b"\x66" * LONGEST + b"\x90") == (0, 0, [])


@pytest.mark.parametrize(
    ("bounds", "piece", "at"), [([0, 5], 0, 6), ([0, 99], 0, 0), ([3, 1], 0, 2), ([0, 5], 0, -1)]
)
def test_other_bounds_are_an_error(bounds: list[int], piece: int, at: int) -> None:
    data, sizes = np.full(5 + PADDING, 0x90, np.uint8), np.zeros(99, np.int16)
    with pytest.raises(IndexError):
        known_lengths(data, np.array(bounds, np.int64), piece, at, sizes)
