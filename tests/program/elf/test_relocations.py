"""Damage to tables of relocations; see test_bolt_blocks.py for what whole ones hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import SHT_RELR, dynamic_relocations

SOURCE = """
.globl _start
_start: ret
.data
.p2align 3
first: .quad _start
.quad first
"""


@pytest.mark.parametrize(("size", "left"), [(16, 2), (15, 1), (7, 0), (1 << 40, 0)])
def test_a_packed_table_of_any_size(link: Callable[..., Path], size: int, left: int) -> None:
    """Its first word is an address, its second a bitmap of those behind."""
    image = Image.open(link(SOURCE, "-pie", "--pack-dyn-relocs=relr"))
    (table,) = (each for each in image.sections if each.type == SHT_RELR)
    assert table.size == 16
    damaged = replace(image, sections=(replace(table, size=size),))
    assert len(dynamic_relocations(damaged)) == left
