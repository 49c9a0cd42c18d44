"""PERF_SAMPLE_BRANCH_COUNTERS: read, carried along and shown."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build

from lbr2pgo.dumping.stacks import Selection, lines
from lbr2pgo.model.branch_stacks import BranchStacks, from_lists
from lbr2pgo.sources.perf_data.reader import PerfData

STACK = ((0x401010, 0x401000, 1), (0x401020, 0x401010, 2))
ANY_USER = 9


def written(path: Path, *events: build.Event, rest: bytes = b"") -> PerfData:
    samples = (
        build.Sample(STACK, sample_id=event.ids[0] if event.ids else 0, rest=rest).encode(event)
        for event in events
    )
    path.write_bytes(build.file_form(events, b"".join(samples)))
    return PerfData(path)


@pytest.mark.parametrize("hw_index", [0, build.HW_INDEX])
def test_counters_stand_beside_their_entries(tmp_path: Path, hw_index: int) -> None:
    event = build.Event(branch_sample_type=ANY_USER | build.COUNTERS | hw_index)
    (batch,) = written(tmp_path / "perf.data", event).batches()
    assert batch.entries.tolist() == [list(entry) for entry in STACK]
    assert batch.counters is not None
    assert batch.counters.tolist() == [9, 9]


def test_without_the_filter_bit_there_are_none(tmp_path: Path) -> None:
    source = written(tmp_path / "perf.data", build.Event(branch_sample_type=ANY_USER))
    (batch,) = source.batches()
    assert batch.counters is None


def test_an_event_without_counters_beside_one_with_has_zeros(tmp_path: Path) -> None:
    sample_type = build.IDENTIFIER | build.IP | build.TID | build.TIME | build.BRANCH_STACK
    with_, without = (
        build.Event(sample_type, ANY_USER | build.COUNTERS, ids=(1,)),
        build.Event(sample_type, ANY_USER, ids=(2,)),
    )
    (batch,) = written(tmp_path / "perf.data", with_, without).batches()
    assert batch.counters is not None
    assert batch.counters.tolist() == [9, 9, 0, 0]


def test_counters_that_the_record_is_too_short_for_are_a_damaged_stack(tmp_path: Path) -> None:
    event = build.Event(branch_sample_type=ANY_USER | build.COUNTERS)
    sample = build.Sample(STACK).encode(event)[8:-8]
    (tmp_path / "perf.data").write_bytes(build.file_form([event], build.record(9, 2, sample)))
    source = PerfData(tmp_path / "perf.data")
    assert list(source.batches()) == []
    assert source.health() == {"damaged: samples whose branch stack does not fit": 1}


def test_dump_shows_them(tmp_path: Path) -> None:
    event = build.Event(branch_sample_type=ANY_USER | build.COUNTERS)
    shown = list(lines(written(tmp_path / "perf.data", event), Selection()))
    assert [line for line in shown if line.endswith("mispredicted, counters 0x9")]
    assert any("branches kept: user,any,counter" in line for line in shown)


def test_a_batch_checks_their_number() -> None:
    batch = from_lists([STACK])
    with pytest.raises(ValueError, match="counters has shape"):
        BranchStacks(
            batch.entries, batch.offsets, batch.pid, batch.tid, batch.time, batch.event, batch.ip,
            batch.weight, np.ones(1, np.uint64),
        )  # fmt: skip


ALL_COUNT = build.IDENTIFIER | build.IP | build.TID | build.TIME | build.BRANCH_STACK


def grouped(path: Path, section: bytes) -> PerfData:
    """`{a/branch_type=any/,b/branch_type=counter/}` and an event of its own.

    The kernel writes counters with all samples of the group, not of `b` alone.
    """
    events = [
        build.Event(ALL_COUNT, ANY_USER | build.COUNTERS * (i == 2), ids=(i,)) for i in (1, 2)
    ]
    alone = build.Event(ALL_COUNT, ANY_USER, ids=(3,))
    written = build.Event(ALL_COUNT, ANY_USER | build.COUNTERS)
    samples = [build.Sample(STACK, sample_id=i).encode(written) for i in (1, 2)]
    samples.append(build.Sample(STACK, sample_id=3).encode(alone))
    path.write_bytes(build.file_form([*events, alone], b"".join(samples), {17: section}))
    return PerfData(path)


def test_a_group_has_counters_if_one_of_its_events_does(tmp_path: Path) -> None:
    section = struct.pack("<I", 1) + build.string("{a,b}") + struct.pack("<II", 0, 2)
    source = grouped(tmp_path / "perf.data", section)
    (batch,) = source.batches()
    assert batch.counters is not None
    assert batch.counters.tolist() == [9, 9, 9, 9, 0, 0]
    kept = [(event.branch_sample_type or 0) & build.COUNTERS for event in source.info.events]
    assert list(map(bool, kept)) == [True, True, False]
    assert source.health() == {}


@pytest.mark.parametrize("places", [(0, 1 << 31), (1 << 31, 2), (7, 2)])
def test_a_group_of_events_that_do_not_exist_is_no_group(
    tmp_path: Path, places: tuple[int, int]
) -> None:
    section = struct.pack("<I", 1) + build.string("{a,b}") + struct.pack("<II", *places)
    (batch,) = grouped(tmp_path / "perf.data", section).batches()
    assert batch.entries.tolist() == [list(entry) for entry in STACK] * 3


def test_damaged_groups_are_told(tmp_path: Path) -> None:
    source = grouped(tmp_path / "perf.data", struct.pack("<I", 3))
    assert len(list(source.batches())) == 1
    assert source.health() == {"damaged: header sections that can't be read": 1}
