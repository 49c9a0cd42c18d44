"""Each sample is counted, or said to be lost at one step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders.counted_stacks import (
    A,
    B,
    C,
    D,
    F,
    counted,
    loaded,
    rows_of,
)
from builders.sources import BASE, LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.chosen_samples import SampleChoice
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.errors import InputError


def test_an_event_is_chosen_by_its_name_with_or_without_modifiers() -> None:
    events = (EventInfo("cycles:u"), EventInfo("instructions:u"))
    samples = [Sample([(B, C)], event=0), Sample([(D, A)], event=1), Sample([(F, C)], event=-1)]
    source = MemorySource(samples, [mapping(base=0)], events)
    for name in ("cycles", "cycles:u"):
        counts = counted(source, event=name)
        assert rows_of(counts) == [(B, C, None, 1)]
        assert counts.tallies["samples_selected/other_event"] == 2
    assert len(counted(source)) == 3


def test_an_unknown_event_is_refused_with_the_recorded_ones() -> None:
    source = MemorySource([], [mapping()], (EventInfo("cycles:u"), EventInfo("branches")))
    with pytest.raises(InputError, match="no event is called cache") as error:
        counted(source, event="cache")
    assert error.value.cure is not None
    assert "cycles:u, branches" in error.value.cure


def test_processes_are_chosen_by_pid() -> None:
    samples = [Sample([(B, C)], pid=pid) for pid in (10, 11, 12)]
    source = MemorySource(samples, [mapping(pid, 0) for pid in (10, 11, 12)])
    counts = counted(source, choice=SampleChoice(pids=(10, 12)))
    assert rows_of(counts) == [(B, C, None, 2)]
    assert counts.tallies["samples_selected/other_process"] == 1


def test_a_sample_is_lost_for_one_reason_only() -> None:
    events = (EventInfo("cycles"), EventInfo("branches"))
    other, lost_in_both = Sample([(B, C)], pid=11, event=0), Sample([], pid=11, event=1)
    tallies = counted(
        MemorySource([other, lost_in_both], [mapping(base=0)], events),
        event="cycles",
        choice=SampleChoice(pids=(10,)),
    ).tallies
    assert tallies["samples_selected/other_event"] == 1
    assert tallies["samples_selected/other_process"] == 1
    assert tallies["samples_with_stack/no_stack"] == 0


def test_a_sample_without_a_stack_is_counted_and_said() -> None:
    counts = counted(MemorySource([Sample(), Sample([(B, C)])], [mapping(base=0)]))
    assert counts.tallies["samples_with_stack/no_stack"] == 1
    assert counts.tallies["samples_mapped"] == 1


def test_only_samples_that_count_are_dropped_for_their_leaf() -> None:
    samples = [replace(loaded((B, C), pid=pid), chain=[BASE + C]) for pid in (10, 11)]
    facts = ImageFacts(LAYOUT, skips_leaf=lambda leaves: np.ones(len(leaves), np.bool_))
    counts = counted(MemorySource(samples, [mapping()]), facts)
    assert counts.tallies["samples_mapped/not_mapped"] == 1
    assert counts.tallies["samples_mapped/in_prologue"] == 1
    assert counts.tallies["samples_mapped"] == 0
