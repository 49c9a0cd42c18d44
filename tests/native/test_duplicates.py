from __future__ import annotations

from builders.sources import Sample
from builders.stack_tables import counted, kinds, spaces, stacks
from hypothesis import given, settings

from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.evidence.duplicates import CopyTable
from lbr2pgo.native.walk import Reason, StackKind


@settings(max_examples=300, deadline=None)
@given(stacks, kinds)
def test_copies_are_those_that_counting_leaves_out(rows, kind: StackKind) -> None:
    samples = [Sample(stack) for stack in rows]
    counting = TraceTable(spaces())
    counted(counting, samples, kind)
    copies = counted(CopyTable(spaces()), samples, kind)
    assert int(copies.count.sum()) == int(counting.tallies[Reason.DUPLICATE])


def test_a_call_that_repeats_in_a_filtered_recording_is_no_copy() -> None:
    samples = [Sample([(0x1010, 0x1020), (0x1010, 0x1020)])]
    filtered, _ = counted(TraceTable(spaces()), samples, StackKind.SELECTED)
    assert filtered.count.tolist() == [2]
    assert not len(counted(CopyTable(spaces()), samples, StackKind.SELECTED))
    whole, _ = counted(TraceTable(spaces()), samples)
    assert whole.count.tolist() == [1]
