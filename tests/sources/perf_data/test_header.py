from __future__ import annotations

import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.perf_readings import STACK, Write, ips_of, numbered, rows, stacks

from lbr2pgo.sources.perf_data import reader as perf_data
from lbr2pgo.support.errors import InputError


def test_pipe_mode_describes_itself_in_its_records(write: Write) -> None:
    event = Event(config=3, ids=(1,), name="from the description")
    other = Event(config=4, ids=(2,))
    early = build.header_feature(3, build.string("a host")) + build.header_feature(99, b"\0")
    records = b"".join([
        build.record(78, 0, (2).to_bytes(8, "little") * 2 + build.text("updated")),
        build.record(65, 0, (3).to_bytes(8, "little") + b"typed".ljust(64, b"\0")),
        build.build_id_record("/bin/x", b"\xab" * 20, size=20, kind=67),
        build.header_feature(6, build.string("x86_64")),
        Sample(STACK).encode(event),
    ])  # fmt: skip
    info = write(build.pipe_form([event, other], records, early)).info
    assert [e.name for e in info.events] == ["typed", "updated"]
    assert (info.machine, info.details["host"]) == ("x86_64", "a host")
    assert info.build_ids == {"/bin/x": "ab" * 20}
    described = records + build.header_feature(12, build.event_desc([event]))
    info = write(build.pipe_form([event, other], described, early)).info
    assert [e.name for e in info.events] == ["from the description", "updated"]


def test_an_unfinished_file_is_read_to_its_end(write: Write) -> None:
    records, ips = numbered(3)
    source = write(build.file_form([Event()], b"".join(records), data_size=0))
    assert ips_of(source) == ips
    assert not source.health()


def test_a_finished_file_may_hold_no_records(write: Write) -> None:
    source = write(build.file_form([Event()], b"", {3: build.string("host"), 15: b""}))
    assert rows(source) == []
    assert source.info.details == {"host": "host"}
    assert not source.health()


def test_old_files_name_events_in_a_section_of_their_own(write: Write) -> None:
    types = (7).to_bytes(8, "little") + b"br_inst".ljust(64, b"\0")
    content = build.file_form([Event(config=7)], b"", magic=b"PERFFILE", event_types=types)
    assert write(content).info.events[0].name == "br_inst"


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (Event(type=0, config=0), "cycles"),
        (Event(type=0, config=4, flags=1 << 5), "branches:u"),
        (Event(type=1, config=9, flags=1 << 4), "dummy:k"),
        (Event(type=4, config=0x20C4), "raw 0x20c4"),
        (Event(type=8, config=1), "type 8 config 0x1"),
    ],
)
def test_nameless_events_are_named_after_their_type(write: Write, event: Event, name: str) -> None:
    assert write(build.file_form([event], b"")).info.events[0].name == name


def test_tells_the_facts_of_the_header(write: Write) -> None:
    features = {
        3: build.string("host"), 4: build.string("6.1"), 5: build.string("6.1.2"),
        6: build.string("aarch64"), 7: (8).to_bytes(4, "little") * 2, 8: build.string("simulated"),
        9: build.string("id"), 10: (4096).to_bytes(8, "little"),
        11: (2).to_bytes(4, "little") + build.string("perf") + build.string("a b"),
        12: build.event_desc([Event(name="given name")]), 13: b"\xff" * 9, 15: b"",
        21: (5).to_bytes(8, "little") + (9).to_bytes(8, "little"),
    }  # fmt: skip
    content = build.file_form([Event()], Sample().encode(Event()), features)
    info = write(content).info
    assert info.machine == "aarch64"
    assert info.events[0].name == "given name"
    assert info.details == {
        "host": "host", "kernel": "6.1", "perf": "6.1.2", "cpu": "simulated", "cpuid": "id",
        "command": "perf a b", "cpus": "8", "memory": "4096 KiB",
        "time of first sample": "5 ns", "time of last sample": "9 ns",
    }  # fmt: skip


SHA1, FAST = bytes(range(1, 21)), bytes(range(1, 9))


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (build.build_id_record("/a", SHA1), SHA1),
        (build.build_id_record("/a", FAST), FAST),
        (build.build_id_record("/a", SHA1[:16]), SHA1[:16]),
        (build.build_id_record("/a", SHA1[:19] + b"\0"), SHA1[:19] + b"\0"),
        (build.build_id_record("/a", SHA1, size=12), SHA1[:12]),
        (build.build_id_record("/a", SHA1, size=20, padding=36) * 2, SHA1),
    ],
    ids=["sha1", "fast", "md5", "ends in zero", "sized", "perf 6.12"],
)
def test_reads_build_ids_as_every_version_wrote_them(
    write: Write, section: bytes, expected: bytes
) -> None:
    sample = Sample().encode(Event())
    source = write(build.file_form([Event()], sample, {2: section}))
    assert source.info.build_ids == {"/a": expected.hex()}
    assert not source.health()


@pytest.mark.parametrize(
    ("feature", "section"),
    [
        (3, b"\xff\0\0\0short"),
        (7, b"\x01"),
        (2, build.build_id_record("/a", SHA1)[:-1]),
        (2, build.record(0, 2, bytes(8))),
        (11, b"\xff\0\0\0"),
        (12, b"\x01\0\0\0\x08\0\0\0" + bytes(100)),
        (12, build.event_desc([Event(ids=(1, 2))])[:-1]),
        (21, bytes(15)),
    ],
)
def test_a_damaged_section_of_the_header_costs_only_itself(
    write: Write, feature: int, section: bytes
) -> None:
    features = {6: build.string("x86_64"), feature: section}
    source = write(build.file_form([Event()], Sample(STACK).encode(Event()), features))
    assert source.info.machine == "x86_64"
    assert stacks(source) == [STACK]
    assert source.health() == {perf_data.BAD_FEATURES: 1}


def test_reads_build_ids_of_the_time_before_they_had_a_pid(write: Write) -> None:
    section = build.build_id_record("[kernel.kallsyms]", SHA1, pid=False)
    section += build.build_id_record("/b", FAST, pid=False)
    source = write(build.file_form([Event()], Sample().encode(Event()), {2: section}))
    assert source.info.build_ids == {"[kernel.kallsyms]": SHA1.hex(), "/b": FAST.hex()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ends within its header"),
        (b"PERFILE2", "ends within its header"),
        (b"PERFILE2" + (104).to_bytes(8, "little"), "104 bytes"),
        (b"2ELIFREP" + bytes(96), "big-endian"),
        (b"something else entirely", "not a perf.data"),
        (build.file_form([Event(size=40)], b""), "no event"),
        (build.pipe_form([], b""), "no event"),
        (build.pipe_form([Event(size=48)], b""), "no event"),
    ],
)
def test_says_why_a_file_is_not_usable(write: Write, content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        rows(write(content))
    assert caught.value.where
    assert caught.value.cure


def test_events_can_not_share_the_same_bytes_for_their_ids(write: Write) -> None:
    """A file of some megabytes must not describe gigabytes."""
    content = build.file_form([Event(ids=tuple(range(1000)))] * 3, b"")
    at = content.index((8 * 1000).to_bytes(8, "little"))
    lying = content.replace((8 * 1000).to_bytes(8, "little"), (10_000).to_bytes(8, "little"))
    assert at
    assert len(lying) < 30_000
    with pytest.raises(InputError, match="more ids than the file can hold"):
        write(lying)
