from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.perf_readings import STACK, Row, Write, chains, ips_of, numbered, rows, stacks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Addresses, Sniff, StackSource
from lbr2pgo.sources.perf_data import reader as perf_data
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.errors import InputError

WORDS = st.integers(0, 2**64 - 1)


ENTRIES = st.tuples(WORDS, WORDS, WORDS)


@st.composite
def events(draw: st.DrawFn) -> Event:
    kinds = draw(st.integers(0, 2**12 - 1)) | draw(st.sampled_from([0, build.IDENTIFIER]))
    return Event(
        sample_type=kinds,
        branch_sample_type=9 | draw(st.sampled_from([0, build.HW_INDEX, build.COUNTERS, 0xA0000])),
        read_format=draw(st.integers(0, 31)),
        size=draw(st.sampled_from([80, 96, 112, 128, 136, 200])),
    )


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    return Sample(
        stack=tuple(draw(st.lists(ENTRIES, max_size=4))),
        ip=draw(WORDS),
        pid=draw(st.integers(-1, 2**31 - 1)),
        tid=draw(st.integers(-1, 2**31 - 1)),
        time=draw(WORDS),
        callchain=tuple(draw(st.lists(WORDS, max_size=3))),
        raw=draw(st.binary(max_size=20)),
        group=tuple(draw(st.lists(WORDS, min_size=1, max_size=3))),
        rest=draw(st.sampled_from([b"", bytes(24)])),
    )


def expected_row(event: Event, sample: Sample) -> Row:
    kinds = event.sample_type
    has_tid = kinds & build.TID
    return (
        0,
        sample.ip if kinds & build.IP else 0,
        sample.pid if has_tid else -1,
        sample.tid if has_tid else -1,
        sample.time if kinds & build.TIME else -1,
        sample.stack if kinds & build.BRANCH_STACK else (),
    )


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(event=events(), given_samples=st.lists(samples(), max_size=4), form=st.integers(0, 3))
def test_reads_every_sample_type_in_every_form(
    write: Write, event: Event, given_samples: list[Sample], form: int
) -> None:
    records = b"".join(sample.encode(event) for sample in given_samples)
    if form >= 2:
        records = build.Packer(kind=81 if form == 2 else 83).pack(records, 50)
    make = build.pipe_form if form == 1 else build.file_form
    source = write(make([event], records))
    found = rows(source)
    expected = [expected_row(event, sample) for sample in given_samples]
    if not event.sample_type & build.TIME:
        times = [row[4] for row in found]
        assert times == sorted(times)
        expected = [(*row[:4], time, row[5]) for row, time in zip(expected, times, strict=True)]
    assert found == expected
    assert not source.health()


def test_is_a_stack_source_of_run_time_addresses(write: Write) -> None:
    source = write(build.file_form([Event()], b""))
    assert isinstance(source, StackSource)
    assert source.info.addresses is Addresses.RUNTIME
    assert rows(source) == []


def test_an_empty_stack_may_lack_the_hardware_index(write: Write) -> None:
    event = Event(branch_sample_type=9 | build.HW_INDEX)
    short = Sample(without_hw_index=True).encode(event)
    assert stacks(write(build.file_form([event], short + Sample(STACK).encode(event)))) == [
        (),
        STACK,
    ]


@pytest.mark.parametrize("size", [64, 72])
def test_events_older_than_branch_stacks(write: Write, size: int) -> None:
    event = Event(sample_type=build.IP | build.TID | build.TIME, size=size)
    source = write(build.file_form([event], Sample(STACK).encode(event)))
    assert stacks(source) == [()]
    assert source.info.events[0].branch_sample_type is None


@pytest.mark.parametrize("field", [build.ID, build.IDENTIFIER])
def test_tells_events_apart_by_their_ids(write: Write, field: int) -> None:
    common = build.IP | build.TID | build.TIME | field
    with_stack = Event(common | build.BRANCH_STACK, ids=(5, 900), name="branches")
    without = Event(common | build.PERIOD, branch_sample_type=0, ids=(7, 2**63), name="others")
    pair = [with_stack, without]
    ids = [5, 7, 2**63, 900, 0, 6]
    owners = [with_stack, without, without, with_stack, with_stack, without]
    records = b"".join(
        Sample(STACK, sample_id=i).encode(event) for i, event in zip(ids, owners, strict=True)
    )
    source = write(build.file_form(pair, records, {12: build.event_desc(pair)}))
    assert [(row[0], row[5]) for row in rows(source)] == [
        (0, STACK), (1, ()), (1, ()), (0, STACK), (0, STACK)
    ]  # fmt: skip
    assert source.health() == {"samples of an unknown event": 1}
    assert [(e.name, e.branch_sample_type) for e in source.info.events] == [
        ("branches", 9), ("others", None)
    ]  # fmt: skip


def test_batches_are_bounded_and_cover_every_sample(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_data, "BATCH_SAMPLES", 7)
    records, ips = numbered(50)
    source = write(build.file_form([Event()], b"".join(records)))
    assert max(map(len, source.batches())) == 7
    assert ips_of(source) == ips


def test_batches_are_bounded_in_entries_as_well(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_data, "BATCH_ENTRIES", 2725)
    big, small = Sample(STACK * 1360), Sample(STACK)
    records = b"".join(s.encode(Event()) for s in (small, big, big, small, small))
    source = write(build.file_form([Event()], records))
    assert [len(batch) for batch in source.batches()] == [2, 3]


def test_a_directory_holds_further_files_of_records(tmp_path: Path) -> None:
    records, ips = numbered(13)
    (tmp_path / "data").write_bytes(build.file_form([Event()], records[0]))
    for i, record in enumerate(records[1:]):
        packed = build.Packer().pack(record) if i % 2 else record
        (tmp_path / f"data.{i}").write_bytes(packed)
    assert ips_of(PerfData(tmp_path)) == ips


@pytest.mark.parametrize("name", ["data", "data.0"])
def test_a_pipe_in_a_directory_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").write_bytes(build.file_form([Event()], b""))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=r"not a regular file|none that perf record"):
        list(open_source(tmp_path).space_events())


@pytest.mark.parametrize("count", [3, 2**20, 2**61 + 1, 2**64 - 1])
def test_a_stack_too_deep_for_its_record_is_counted(write: Write, count: int) -> None:
    records, ips = numbered(3)
    at = records[1].index((2).to_bytes(8, "little"), 24)
    records[1] = records[1][:at] + count.to_bytes(8, "little") + records[1][at + 8 :]
    source = write(build.file_form([Event()], b"".join(records)))
    assert ips_of(source) == [ips[0], ips[2]]
    assert source.health() == {"damaged: samples whose branch stack does not fit": 1}


@pytest.mark.parametrize("kind", [build.READ, build.CALLCHAIN, build.RAW])
@pytest.mark.parametrize("count", [2**31, 2**61 | 2**31, 2**64 - 1])
def test_counts_that_lie_before_the_stack(write: Write, kind: int, count: int) -> None:
    event = Event(build.IP | build.BRANCH_STACK | kind, read_format=8)
    body = bytes(8) + count.to_bytes(8, "little") + bytes(64)
    source = write(build.file_form([event], build.record(9, 2, body)))
    assert rows(source) == []
    assert sum(source.health().values()) == 1


WITH_CHAINS = Event(build.IP | build.CALLCHAIN | build.BRANCH_STACK)
KERNEL, USER, DEFERRED = 2**64 - 128, 2**64 - 512, 2**64 - 640


def test_call_chains_are_addresses_without_what_marks_their_contexts(write: Write) -> None:
    given = [
        (USER, 0x401000, 0x401500),
        (KERNEL, 2**64 - 4096, 0xFFFFFFFF81000000, USER, 0x401008),
        (),
        (2**64 - 4095, 0, 2**64 - 1),
    ]
    records = b"".join(Sample(STACK, callchain=chain).encode(WITH_CHAINS) for chain in given)
    source = write(build.file_form([WITH_CHAINS], records))
    assert source.info.has_call_chains
    assert chains(source) == [
        [0x401000, 0x401500], [2**64 - 4096, 0xFFFFFFFF81000000, 0x401008], [], [0],
    ]  # fmt: skip
    assert stacks(source) == [STACK] * 4
    assert not source.health()


def test_the_users_frames_of_a_later_record_are_told_as_lost(write: Write) -> None:
    chain = (KERNEL, 2**64 - 8192, DEFERRED, 0x1234)
    records = Sample(STACK, callchain=chain).encode(WITH_CHAINS)
    source = write(build.file_form([WITH_CHAINS], records))
    assert chains(source) == [[2**64 - 8192]]
    assert source.health() == {
        "call chains without the user's frames, which a later record holds": 1
    }


def test_stacks_of_calls_are_no_call_chains(write: Write) -> None:
    """What was interrupted is all that the kernel puts beside them."""
    calls = Event(WITH_CHAINS.sample_type, branch_sample_type=1 | 1 << 11)
    sample = Sample(STACK, callchain=(USER, 0x401000))
    source = write(build.file_form([calls], sample.encode(calls)))
    assert not source.info.has_call_chains
    assert (stacks(source), chains(source)) == ([STACK], [[]])


def test_a_call_chain_of_a_million_frames_is_counted(write: Write) -> None:
    body = bytes(8) + (10**6).to_bytes(8, "little") + bytes(60_000)
    whole = Sample(callchain=(USER, *range(8_000)))
    records = build.record(9, 2, body) + whole.encode(WITH_CHAINS)
    source = write(build.file_form([WITH_CHAINS], records))
    assert chains(source) == [[*range(8_000)]]
    assert source.health() == {"damaged: samples whose call chain does not fit": 1}


def test_samples_shorter_than_their_fields_are_counted(write: Write) -> None:
    records = b"".join(build.record(9, 2, bytes(n)) for n in (0, 8, 16))
    source = write(build.file_form([Event()], records))
    assert rows(source) == []
    assert source.health() == {"damaged: samples shorter than their fields": 3}


def read_everything(source: PerfData) -> None:
    assert source.info.events
    source.space_events()
    rows(source)
    source.health()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_change_of_bytes_does_more_than_harm_the_result(
    write: Write, data: st.DataObject
) -> None:
    records, _ = numbered(3)
    tail = build.comm(1, 1, "x", Event().trailer()) + build.Packer(83).pack(records[0])
    features = {2: build.build_id_record("/a", bytes(range(20))), 12: build.event_desc([Event()])}
    make = data.draw(st.sampled_from([0, 1]))
    body = b"".join(records) + tail
    content = bytearray(
        build.pipe_form([Event()], body) if make else build.file_form([Event()], body, features)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.sampled_from([0, 1, 8, 0x7F, 0x80, 0xFF]))
    complaint = None
    try:
        read_everything(write(bytes(content)))
    except InputError as error:
        complaint = error
    assert complaint is None or (complaint.where and complaint.cure)


def test_refuses_what_can_be_read_only_once() -> None:
    with pytest.raises(InputError, match="not a regular file"):
        PerfData(Path("/dev/null"))


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"PERFILE2" + bytes(9), Sniff.YES),
        (b"2ELIFREP" + bytes(9), Sniff.YES),
        (b"PERFFILE" + bytes(9), Sniff.YES),
        (b"PERFI", Sniff.MORE),
        (b"", Sniff.NO),
        (b"PERF_RECORD_MMAP2", Sniff.NO),
        (b"\x7fELF", Sniff.NO),
    ],
)
def test_sniffs_by_the_magic(head: bytes, answer: Sniff) -> None:
    assert perf_data.FORMAT.sniff(head) is answer
