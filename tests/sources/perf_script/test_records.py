from __future__ import annotations

import pytest

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.sources.perf_script.records import RecordLine, read_comments, read_record
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress

TIME = 12_000_000_345


def mapping(path: str, *, executable: bool = True, build_id: str | None = None) -> Mmap:
    return Mmap(
        pid=7, tid=8, time=TIME, start=RuntimeAddress(0x400000), length=0x1000,
        file_offset=FileOffset(0x2000), path=path, build_id=build_id, executable=executable,
    )  # fmt: skip


AT = b"[0x400000(0x1000) @ 0x2000"
RECORDS = {
    b"MMAP 7/8: " + AT + b"]: r-xp /bin/a b": mapping("/bin/a b"),
    b"MMAP2 7/8: " + AT + b" 08:01 5 6]: r-xp /bin/a": mapping("/bin/a"),
    b"MMAP2 7/8: " + AT + b" <0aff>]: r-xp /bin/a": mapping("/bin/a", build_id="0aff"),
    b"MMAP2 7/8: " + AT + b" 08:01 5 6]: rw-p /bin/a": mapping("/bin/a", executable=False),
    b"MMAP2 7/8: " + AT + b" 08:01 5 6]: ---p [kernel]": mapping("[kernel]"),
    b"MMAP 7/8: " + AT + b"]: r-xp /bin/\xff": mapping("/bin/\udcff"),
    b"COMM: a name:7/8": Comm(7, 8, TIME, "a name", is_exec=False),
    b"COMM exec: a:b:7/8": Comm(7, 8, TIME, "a:b", is_exec=True),
    b"FORK(9:10):(7:8)": Fork(9, 7, 10, TIME),
    b"EXIT(9:10):(7:8)": Exit(9, 10, TIME),
}


@pytest.mark.parametrize(("text", "event"), RECORDS.items())
def test_a_record_is_what_perf_says_of_it(text: bytes, event: object) -> None:
    line = b"sq 7 [000] 12.000000345: PERF_RECORD_" + text + b"\n"
    assert read_record(line, place=3) == RecordLine(event, TIME)  # type: ignore[arg-type]


def test_the_place_in_the_file_stands_for_a_time_that_is_not_there() -> None:
    line = b"PERF_RECORD_EXIT(9:10):(7:8)"
    assert read_record(line, place=3) == RecordLine(Exit(9, 10, 3), None)
    timed = read_record(b" 12.000000345: " + line, place=3, is_timed=False)
    assert timed == RecordLine(Exit(9, 10, 3), TIME)


def test_lost_samples_are_counted() -> None:
    assert read_record(b" 1.5: PERF_RECORD_LOST lost 12", 0) == RecordLine(None, 1_500_000_000, 12)
    assert read_record(b"PERF_RECORD_LOST_SAMPLES lost 3", 0).lost == 3


@pytest.mark.parametrize(
    "line",
    [b"PERF_RECORD_", b"no record", b"PERF_RECORD_MMAP 7/8: [0x4", b"PERF_RECORD_FORK(9:10)"],
)
def test_damage_is_told(line: bytes) -> None:
    assert read_record(line, 0).is_damaged


def test_other_records_change_nothing() -> None:
    assert read_record(b" 1.5: PERF_RECORD_THROTTLE 1", 0) == RecordLine(None, 1_500_000_000)


def test_comments_tell_machine_facts_and_filters() -> None:
    comments = read_comments(
        b"# hostname : here\n# arch : x86_64\n# nothing\n"
        b"# event : name = cycles:u, type = 0, branch_sample_type = USER|ANY_RETURN|NEW, id = 1\n"
    )
    bits = BRANCH_FILTER_BITS
    assert comments.machine == "x86_64"
    assert comments.facts == {"host": "here"}
    assert comments.event("cycles:u").branch_sample_type == 1 << bits["user"] | 1 << bits["any_ret"]
    assert comments.event("another").branch_sample_type is None
