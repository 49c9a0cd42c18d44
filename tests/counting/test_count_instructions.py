"""Where samples interrupted the program, counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.perf_data import (
    IDENTIFIER,
    IP,
    SAMPLE_ID_ALL,
    TID,
    TIME,
    Event,
    Sample,
    event_desc,
    file_form,
    mmap2,
)  # fmt: skip
from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY, recorded

from lbr2pgo.counting.chosen_samples import CountingOptions, SampleChoice
from lbr2pgo.counting.count_instructions import count_instructions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.model.waterfall import check
from lbr2pgo.program.elf.image import Image
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError

MAP = (
    "PERF_RECORD_MMAP2 10/10: [0x202000(0xa0000) @ 0x1000 08:01 5 0]: r-xp /elsewhere/interp.static"
)
Count = Callable[..., InstructionCounts]


@pytest.fixture
def counted(tmp_path: Path) -> Count:
    def count(*lines: str, **options: object) -> InstructionCounts:
        path = tmp_path / "samples.txt"
        path.write_text("\n".join((MAP, *lines)) + "\n")
        facts, chosen = ImageFacts(Image.open(STATIC).layout), CountingOptions(**options)  # type: ignore[arg-type]
        return count_instructions(open_source(path), facts, chosen).counts

    return count


def sample(ip: int, pid: int = 10, event: str = "cycles:u", rest: str = "") -> str:
    return f"interp {pid} 100.000100: 1 {event}: {ip:x} main+0x1 (/elsewhere/interp.static){rest}"


def rows(counts: InstructionCounts) -> list[tuple[int, int]]:
    return list(zip(counts.address.tolist(), counts.count.tolist(), strict=True))


def test_each_sample_counts_where_it_interrupted_the_program(counted: Count) -> None:
    counts = counted(sample(0x22A8DA), sample(0x22A8C0), sample(0x22A8DA))
    assert rows(counts) == [(0x22A8C0, 1), (0x22A8DA, 2)]
    assert counts.build_id == Image.open(STATIC).build_id


@pytest.mark.parametrize("precise", [0, 2])
def test_the_waterfall_says_how_many_samples_are_of_precise_events(
    tmp_path: Path, precise: int
) -> None:
    path = tmp_path / "perf.data"
    event = Event(flags=SAMPLE_ID_ALL | precise << 15)
    path.write_bytes(recorded([[STATIC_ENTRY]] * 3, event=event))
    found = count_instructions(open_source(path), ImageFacts(Image.open(STATIC).layout)).counts
    assert found.tallies["instructions_precise"] == (3 if precise else 0)
    assert found.tallies["instructions_mapped"] == 3
    check(found.tallies)


def test_text_does_not_say_how_precise_its_events_are(counted: Count) -> None:
    assert "instructions_precise" not in counted(sample(0x22A8DA)).tallies


def test_samples_elsewhere_are_lost_for_a_reason(counted: Count) -> None:
    counts = counted(sample(0x22A8DA), sample(0x7F0000001000), sample(0x22A8DA, pid=11))
    assert rows(counts) == [(0x22A8DA, 1)]
    check(counts.tallies)
    assert counts.tallies["instructions_in_image/elsewhere"] == 1
    assert counts.tallies["instructions_mapped/not_mapped"] == 1


def test_samples_are_chosen_by_event_and_process(counted: Count) -> None:
    lines = sample(0x22A8DA), sample(0x22A8C0, event="instructions:u")
    assert rows(counted(*lines, event="instructions")) == [(0x22A8C0, 1)]
    chosen = counted(*lines, choice=SampleChoice(pids=(11,)))
    assert rows(chosen) == []
    check(chosen.tallies)
    assert chosen.tallies["samples_selected/other_process"] == 2


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        ("arm_spe_0//", None, [(0x22A8C0, 1), (0x22A8DA, 1)]),
        ("arm_spe_0//", "branch", [(0x22A8DA, 1)]),
        ("cycles:u", None, [(0x22A8C0, 1), (0x22A8DA, 2)]),
    ],
)
def test_each_record_of_arm_spe_counts_once(
    tmp_path: Path, name: str, event: str | None, expected: list[tuple[int, int]]
) -> None:
    """perf inject makes a sample of a record for each event that it fits."""
    kind = IDENTIFIER | IP | TID | TIME
    names = (name, "instructions", "branch")
    events = [Event(kind, 0, ids=(i,), name=each) for i, each in enumerate(names, 1)]
    trailer = events[0].trailer(10, 10, 1, 1)
    space = mmap2(10, 0x202000, 0xA0000, "/elsewhere/interp.static", trailer)
    samples = b"".join(
        Sample(ip=ip, pid=10, tid=10, time=100, sample_id=i).encode(events[i - 1])
        for ip, i in ((0x22A8C0, 2), (0x22A8DA, 2), (0x22A8DA, 3))
    )
    path = tmp_path / "perf.data"
    path.write_bytes(file_form(events, space + samples, {12: event_desc(events)}))
    facts, chosen = ImageFacts(Image.open(STATIC).layout), CountingOptions(event=event)
    counts = count_instructions(open_source(path), facts, chosen).counts
    assert rows(counts) == expected
    check(counts.tallies)


def test_stacks_of_branches_make_no_difference() -> None:
    counts = count_instructions(open_source(RECORDING), ImageFacts(Image.open(PIE).layout)).counts
    assert counts.tallies["samples_read"] == counts.total + 1 == 128


def test_basic_samples_of_a_preaggregated_file_count(tmp_path: Path) -> None:
    path = tmp_path / "p.preagg"
    path.write_text("E cycles\nS 22a8da 7\nS 22a8da 2\nS 7f0000001000 5\nB 22a8da 22a8c0 3 0\n")
    source = open_source(path)
    counts = count_instructions(source, ImageFacts(Image.open(STATIC).layout)).counts
    assert rows(counts) == [(0x22A8DA, 9)]
    check(counts.tallies)
    assert counts.tallies["instructions_in_image/elsewhere"] == 5
    assert source.health()["rows of branches, where samples were asked for"] == 1


def test_what_holds_branches_alone_is_refused(tmp_path: Path) -> None:
    from lbr2pgo.conversion import ConvertOptions, convert
    from lbr2pgo.profiles.registry import output

    saved = tmp_path / "counts.npz"
    convert(ConvertOptions((RECORDING,), PIE, (output("counts", saved),)))
    with pytest.raises(InputError, match="no samples of instructions"):
        count_instructions(open_source(saved), ImageFacts(Image.open(PIE).layout))


def test_samples_at_the_addresses_of_registers_are_no_dump_of_these(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    path.write_text(
        "E instructions\nS 1240 1\n" + "".join(f"S {0x14CE + i:x} 1\n" for i in range(64))
    )
    assert open_source(path).info.format == "BOLT pre-aggregated"
