from __future__ import annotations

from dataclasses import replace

import numpy as np
from builders.sources import Sample
from builders.stack_tables import samples_of

from lbr2pgo.evidence.stack_kinds import KindCollector
from lbr2pgo.native.walk import StackKind

SAMPLE = Sample([(0x1020, 0x1010)])


def test_kinds_of_all_sources_are_told() -> None:
    one, other = KindCollector(), KindCollector()
    one.add(samples_of([SAMPLE]))
    other.add(samples_of([SAMPLE], StackKind.OPEN_CALLS))
    one.merge(other)
    assert one.result() == {StackKind.CONSECUTIVE, StackKind.OPEN_CALLS}


def test_samples_that_are_not_counted_tell_nothing() -> None:
    collector = KindCollector()
    samples = samples_of([SAMPLE], StackKind.SELECTED)
    collector.add(replace(samples, spaces=np.array([-1])))
    assert collector.result() == frozenset()
