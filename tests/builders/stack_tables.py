"""Stacks at random around one small image, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from builders.sources import Sample, batch_of
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.evidence.collector import Collector, Samples
from lbr2pgo.evidence.cycle_counts import CycleCollector, CycleCounts
from lbr2pgo.evidence.sample_runs import KnownRuns
from lbr2pgo.model.branch_stacks import ABORT, NOT_TAKEN, SPEC_SHIFT, TYPE_SHIFT
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.elf.layout import ImageLayout, Segment

LAYOUT = ImageLayout("a", None, "x86-64", False, (Segment(0x1000, 0, 0x4000, 0x4000, True),))
OUTSIDE = 0x9000
IRQ = 12 << TYPE_SHIFT

addresses = st.sampled_from([0, 0x1010, 0x1020, 0x1030, 0x3500, OUTSIDE])
words = st.sampled_from([0, 1, 2, ABORT, IRQ, NOT_TAKEN, 1 << SPEC_SHIFT])
cycles = st.sampled_from([0, 1, 2, 700, 65535])
entries = st.builds(lambda a, b, w, c: (a, b, w | c << 4), addresses, addresses, words, cycles)
stacks = st.lists(st.lists(entries, max_size=8), max_size=6)
kinds = st.sampled_from(list(StackKind))

T = TypeVar("T")


def spaces() -> AddressSpaces:
    return AddressSpaces.fixed(LAYOUT)


def no_runs() -> KnownRuns:
    """Of a program whose code is not known."""
    return KnownRuns(spaces(), InstructionTable.empty())


def samples_of(
    samples: Sequence[Sample],
    kind: StackKind = StackKind.CONSECUTIVE,
    runs: KnownRuns | None = None,
) -> Samples:
    """Samples with this kind of stack, of a program whose code is not known."""
    n = len(samples)
    each = np.zeros(n, np.int64), np.full(n, kind, np.uint8)
    return Samples(batch_of(samples), *each, runs or no_runs())


def traces(samples: Sequence[Sample], kind: StackKind = StackKind.CONSECUTIVE) -> TraceTable:
    """What counting makes of samples with this kind of stack."""
    table, given = TraceTable(spaces()), samples_of(samples, kind)
    table.add(given.batch, given.spaces, given.kinds)
    return table


def timed(samples: Sequence[Sample], kind: StackKind = StackKind.CONSECUTIVE) -> CycleCounts:
    """The runs of samples with this kind of stack, by cycles."""
    runs = no_runs()
    collector = CycleCollector(runs)
    collector.add(samples_of(samples, kind, runs))
    return collector.result()


def collected(
    collector: Collector[T], samples: Sequence[Sample], kind: StackKind = StackKind.CONSECUTIVE
) -> T:
    """What a collector finds in samples with this kind of stack."""
    collector.add(samples_of(samples, kind))
    return collector.result()
