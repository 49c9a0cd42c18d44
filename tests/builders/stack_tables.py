"""Stacks at random around one small image, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from builders.sources import Sample, batch_of
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.model.branch_stacks import ABORT, NOT_TAKEN, SPEC_SHIFT, TYPE_SHIFT, BranchStacks
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.support.arrays import I64, U8

LAYOUT = ImageLayout("a", None, "x86-64", False, (Segment(0x1000, 0, 0x4000, 0x4000, True),))
OUTSIDE = 0x9000
IRQ = 12 << TYPE_SHIFT

addresses = st.sampled_from([0, 0x1010, 0x1020, 0x1030, 0x3500, OUTSIDE])
words = st.sampled_from([0, 1, 2, ABORT, IRQ, NOT_TAKEN, 1 << SPEC_SHIFT])
cycles = st.sampled_from([0, 1, 2, 700, 65535])
entries = st.builds(lambda a, b, w, c: (a, b, w | c << 4), addresses, addresses, words, cycles)
stacks = st.lists(st.lists(entries, max_size=8), max_size=6)
kinds = st.sampled_from(list(StackKind))

T = TypeVar("T", covariant=True)


class Table(Protocol[T]):
    def add(self, batch: BranchStacks, spaces: I64, kinds: U8) -> None: ...
    def counts(self) -> T: ...


def spaces() -> AddressSpaces:
    return AddressSpaces.fixed(LAYOUT)


def counted(
    table: Table[T], samples: Sequence[Sample], kind: StackKind = StackKind.CONSECUTIVE
) -> T:
    """What a table says of samples with this kind of stack."""
    n = len(samples)
    table.add(batch_of(samples), np.zeros(n, np.int64), np.full(n, kind, np.uint8))
    return table.counts()
