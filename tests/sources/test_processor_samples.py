"""Where leaves lie, and how often they count."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Run, Tool
from builders.recordings import PIE, STATIC

from lbr2pgo.counting.count_instructions import count_instructions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.program.elf.layout import MODULE, ImageLayout, Segment
from lbr2pgo.program.program import Program
from lbr2pgo.sources.base import Addresses
from lbr2pgo.sources.processor_samples import (
    Leaf,
    Leaves,
    MappedFile,
    ProcessorSamples,
    build_id_of,
    column_of,
    profile_of,
    samples_of,
)
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.sums import TooManyError

BASE = 0x555500000000
OTHER = MappedFile(0x7F0000000000, 0x7F0000100000, 0, "/lib/libother.so", None)


def samples(leaves: dict[Leaf, int], files: dict[int, MappedFile]) -> ProcessorSamples:
    return ProcessorSamples(Path("cpu"), "pprof", Leaves(leaves, files, "cpu"))


def counted(source: ProcessorSamples, program: Path) -> dict[int, int]:
    facts = ImageFacts(Program.open(program).image.layout)
    found = count_instructions(source, facts).counts
    return dict(zip(found.address.tolist(), found.count.tolist(), strict=True))


def mapping(program: Path, start: int, *, named: bool = True) -> MappedFile:
    """Of its first executable segment."""
    image = Program.open(program).image
    code = next(each for each in image.layout.segments if each.executable)
    return MappedFile(
        start, start + code.file_size, code.file_offset, str(program) if named else "",
        image.build_id if named else None,
    )  # fmt: skip


def code_of(program: Path) -> int:
    return int(next(e for e in Program.open(program).image.layout.segments if e.executable).address)


def test_addresses_in_their_mappings_are_of_the_process() -> None:
    at = code_of(PIE)
    source = samples(
        {(1, BASE + 0x20): 3, (2, OTHER.start + 8): 9}, {1: mapping(PIE, BASE), 2: OTHER}
    )
    assert source.info.addresses is Addresses.RUNTIME
    assert counted(source, PIE) == {at + 0x20: 3}


@pytest.mark.parametrize("start", [0, BASE], ids=["mapped at 0", "mapped elsewhere"])
def test_other_addresses_are_as_their_file_links_them(start: int) -> None:
    at = code_of(PIE)
    files = {1: mapping(PIE, start), 2: MappedFile(start, start + 1, 0, "/lib/other.so", "ab")}
    assert counted(samples({(1, at + 8): 3, (2, at + 8): 9}, files), PIE) == {at + 8: 3}


def test_most_samples_of_a_file_tell_how_its_addresses_are_meant() -> None:
    at, files = code_of(PIE), {1: mapping(PIE, BASE)}
    assert counted(samples({(1, BASE + 8): 3, (1, at): 1}, files), PIE) == {at + 8: 3}
    assert counted(samples({(1, BASE + 8): 1, (1, at): 3}, files), PIE) == {at: 3}


def test_addresses_in_no_file_or_one_that_is_not_known_count_for_no_other() -> None:
    at, nameless = code_of(PIE), MappedFile(0, 0, 0, "", None)
    files = {1: mapping(PIE, 0), 2: nameless}
    source = samples({(1, at): 3, (2, at + 1): 5, (7, at + 2): 6}, files)
    assert counted(source, PIE) == {at: 3}
    assert list(source.health().values()) == [11]
    source = samples({(1, at): 3, (2, at + 1): 5}, {1: nameless, 2: nameless})
    assert counted(source, PIE) == {at: 3}
    assert list(source.health().values()) == [5]


def test_a_process_s_address_without_a_mapping_lies_in_one() -> None:
    at = code_of(PIE)
    source = samples({(1, BASE + 8): 3, (0, BASE + 9): 4}, {1: mapping(PIE, BASE)})
    assert counted(source, PIE) == {at + 8: 3, at + 9: 4}


def test_a_nameless_mapping_of_a_process_is_not_taken_for_the_program() -> None:
    files = {1: MappedFile(BASE, BASE + 0x3000, 0, "", None)}
    with pytest.raises(InputError, match=r"no process .* mapped"):
        counted(samples({(1, BASE + 8): 3}, files), PIE)


def test_libraries_of_our_own_exports_have_slots() -> None:
    at = code_of(PIE)
    file = replace(mapping(PIE, 0), start=3 << 48, limit=4 << 48)
    assert counted(samples({(1, (3 << 48) + at): 3}, {1: file}), PIE) == {at: 3}


def test_a_kernel_s_module_may_lie_as_it_is_linked() -> None:
    layout = ImageLayout(
        "/lib/a.ko", "ab", "x86-64", False, (Segment(0x40, 0x40, 0x80, 0x80, True),),
        {MODULE: 0x40},
    )  # fmt: skip
    source = samples({(1, 0x50): 3}, {1: MappedFile(0, 0, 0, "[a]", "ab")})
    found = count_instructions(source, ImageFacts(layout)).counts
    assert found.address.tolist() == [0x50]


def test_processes_that_mapped_different_files_at_one_place_are_told_apart() -> None:
    here, there = mapping(PIE, BASE), MappedFile(BASE, BASE + 0x10000, 0, "/bin/other", "ab")
    source = samples(
        {(1, BASE + 1): 3, (2, BASE + 1): 5, (3, BASE + 2): 7}, {1: here, 2: there, 3: here}
    )
    assert counted(source, PIE) == {code_of(PIE) + 1: 3, code_of(PIE) + 2: 7}


def test_files_that_lie_apart_are_of_one_process() -> None:
    files = {4: mapping(PIE, BASE), 2: OTHER, 3: mapping(PIE, BASE), 1: mapping(PIE, 0)}
    places = {(4, BASE): 1, (2, OTHER.start): 5, (3, BASE): 2, (1, code_of(PIE)): 3}
    source = samples(places, files)
    (batch,) = source.batches()
    assert batch.pid.tolist() == [1, 1, 3, 4]
    events = source.space_events()
    assert [event.pid for event in events] == [1, 1, 3, 4]
    found = count_instructions(source, ImageFacts(Program.open(PIE).image.layout)).counts
    assert found.count.tolist() == [6]
    told = (found.tallies["instructions_mapped"], found.tallies["instructions_in_image/elsewhere"])
    assert told == (11, 5)


def test_without_any_file_addresses_are_as_linked() -> None:
    at = code_of(STATIC)
    nameless = mapping(STATIC, 0, named=False)
    for files in ({}, {1: nameless}):
        source = samples({(1, at): 2, (0, 0): 1}, files)
        assert source.info.addresses is Addresses.IMAGE
        assert counted(source, STATIC) == {at: 2}
        assert source.health() == {"samples without an address": 1}


def test_programs_without_symbols_are_counted_too(tmp_path: Path, tool: Tool, run: Run) -> None:
    stripped = tmp_path / "stripped"
    run(tool("strip"), "-o", stripped, PIE)
    source = samples({(1, BASE + 4): 3}, {1: mapping(PIE, BASE)})
    assert counted(source, stripped) == {code_of(PIE) + 4: 3}


def test_a_branch_recorder_is_advised() -> None:
    assert "branch recorder" in (samples({(0, 1): 1}, {}).info.advice or "")


@pytest.mark.parametrize(
    ("types", "column"),
    [
        (["cpu", "samples"], 1),
        (["alloc_space", "cpu"], 1),
        (["cycles_event", "cycles_sample"], 1),
        (["wall", "instructions:u_sample"], 1),
    ],
)
def test_the_type_that_tells_best_where_processors_were(types: list[str], column: int) -> None:
    assert column_of(types) == column


def test_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="tells of inuse_space, wall, cycles_event, and not"):
        column_of(["inuse_space", "wall", "cycles_event"])


def test_build_ids_are_hexadecimal() -> None:
    assert build_id_of("ABCD") == "abcd"
    assert [build_id_of(text) for text in ("", "abc", "go/buildid")] == [None] * 3


def test_times_are_samples_of_their_period() -> None:
    a, b = (1, 16), (1, 17)
    times, cpu = Counter({a: 29_999_999, b: 4_000_000, (1, 18): 0}), "nanoseconds"
    assert samples_of(times, cpu, 10_000_000, cpu) == {a: 3, b: 1}
    assert samples_of(times, cpu, 10, "milliseconds") == {a: 3, b: 1}
    assert samples_of(Counter({a: 30_000}), "microseconds", 10_000, "microseconds") == {a: 3}
    assert samples_of(times, "count", 10_000_000, cpu) == {a: 29_999_999, b: 4_000_000}


@pytest.mark.parametrize(("period", "unit"), [(0, "nanoseconds"), (7, "count"), (1 << 63, "")])
def test_times_without_a_period_have_one_in_common(period: int, unit: str) -> None:
    a, b = (1, 16), (1, 17)
    times = Counter({a: 30_000_000, b: 20_000_000})
    assert samples_of(times, "nanoseconds", period, unit) == {a: 3, b: 2}
    assert samples_of(Counter(), "nanoseconds", period, unit) == {}
    with pytest.raises(ValueError, match="tells nanoseconds, and not the period"):
        samples_of(Counter({a: 30_000_001, b: 20_000_000}), "nanoseconds", period, unit)


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "cpu"
    with path.open("wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(InputError, match="larger than 256 MiB") as caught:
        profile_of(path, "pprof", lambda _: pytest.fail("was read"))
    assert str(path) in str(caught.value)


def test_more_samples_than_any_tool_reads_are_refused() -> None:
    with pytest.raises(TooManyError, match="cpu: the counts add up to 2"):
        samples({(1, 8): (1 << 63) - 1, (1, 9): 1}, {})


def test_all_samples_come_at_once() -> None:
    (batch,) = samples({(1, BASE): 3, (7, 9): 2, (1, 0): 4}, {1: mapping(PIE, BASE)}).batches()
    assert batch.pid.tolist() == [1, -1]
    assert batch.ip.tolist() == [BASE, 9]
    assert batch.weight.tolist() == [3, 2]
    assert np.diff(batch.offsets).tolist() == [0, 0]
