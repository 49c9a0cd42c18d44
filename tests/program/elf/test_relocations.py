"""Tables of relocations, whole and damaged."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Link, Tool
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.elf import relocations
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import SHT_RELR, dynamic_relocations, relative_targets

SOURCE = """
.globl _start
_start: ret
.data
.p2align 3
first: .quad _start
.quad first
"""


@pytest.mark.parametrize(("size", "left"), [(16, 2), (15, 1), (7, 0), (1 << 40, 0)])
def test_a_packed_table_of_any_size(link: Link, size: int, left: int) -> None:
    """Its first word is an address, its second a bitmap of those behind."""
    image = Image.open(link(SOURCE, "-pie", "--pack-dyn-relocs=relr"))
    (table,) = (each for each in image.sections if each.type == SHT_RELR)
    assert table.size == 16
    damaged = replace(image, sections=(replace(table, size=size),))
    assert len(dynamic_relocations(damaged)) == left


def plain_places(words: list[int]) -> list[int]:
    """What a packed table says, word by word."""
    places, place = [], 0
    for word in words:
        if word & 1:
            places += [place + 8 * i for i in range(63) if word >> (i + 1) & 1]
            place += 63 * 8
        else:
            places.append(word)
            place = word + 8
    return [each % (1 << 64) for each in places]


@given(st.lists(st.integers(0, (1 << 64) - 1) | st.sampled_from([1, 3, 0x1000]), max_size=20))
def test_packed_tables_read_as_a_plain_reader_reads_them(words: list[int]) -> None:
    assert relocations._places(np.array(words, np.uint64)).tolist() == plain_places(words)


def test_long_packed_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relocations, "_BITMAPS_AT_ONCE", 4)
    words = [0x1000, *[0b1011] * 9, 0x8000, *[(1 << 64) - 1] * 5]
    assert relocations._places(np.array(words, np.uint64)).tolist() == plain_places(words)


TWO_SEGMENTS = """
.globl _start
_start: ret
.section .data.rel.ro,"aw",@progbits
.p2align 3
.quad _start, 7, _start
.data
.p2align 3
.quad _start, _start
.fill 300000, 8, 0
.quad _start
"""


def test_packed_relocations_are_those_that_readobj_lists(
    link: Link, tool: Tool, run: Callable[..., Any]
) -> None:
    image = Image.open(link(TWO_SEGMENTS, "-pie", "--pack-dyn-relocs=relr"))
    said = run(tool("llvm-readobj-22"), "-r", image.path).stdout
    listed = re.findall(r"0x([0-9A-F]+) R_X86_64_RELATIVE", said)
    found = dynamic_relocations(image)
    assert found["offset"].tolist() == [int(place, 16) for place in listed]
    start = int(code_ranges(image).start[0])
    assert relocations.relative_targets(image, found).tolist() == [start] * 5


def test_packed_relocations_say_the_same(link: Link) -> None:
    words = "".join(f".quad _start+{i % 3}\n.zero {i % 2 * 64}\n" for i in range(200))
    source = ".globl _start\n_start: nop\nnop\nret\n" + f".data\n.p2align 3\n{words}"
    plain = Image.open(link(source, "-pie"))
    expected = dynamic_relocations(plain)
    stored = relative_targets(plain, expected)
    assert len(np.unique(stored)) == 3
    packed = Image.open(link(source, "-pie", "--pack-dyn-relocs=relr", "-z", "rel"))
    found = dynamic_relocations(packed)
    assert len(found) == len(expected) == 200
    assert len(relative_targets(packed, found)) == 200
    assert np.diff(found["offset"]).tolist() == np.diff(expected["offset"]).tolist()
