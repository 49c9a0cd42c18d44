"""Branches outside the image, by the file that was mapped where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from builders.sources import BASE, LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.count import count
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.model import waterfall
from lbr2pgo.model.address_space_events import Comm, Fork, Mmap, SpaceEvent
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.budget import Limit

LIBC, OTHER = 0x5000_0000, 0x6000_0000
KERNEL = 0xFFFF_FFFF_8100_0000


def mapped(path: str, start: int, length: int = 0x1000, pid: int = 10, time: int = 0) -> Mmap:
    return mapping(pid, path=path, start=start, length=length, time=time, build_id=None)


def outside(samples: Sequence[Sample], *events: SpaceEvent) -> dict[str, int]:
    """What lies outside, by file; a process 10 maps the image as well."""
    ordered = sorted((mapping(), *events), key=lambda event: event.time)
    tallies = count(MemorySource(samples, ordered, batch_size=3), LAYOUT).counts.tallies
    waterfall.check(tallies)
    return waterfall.losses_of(tallies, "outside_in")


def jumps(*sources: int, pid: int = 10, time: int = 100) -> Sample:
    return Sample([(source, source + 8) for source in sources], pid=pid, time=time)


def test_each_file_has_its_branches() -> None:
    events = mapped("/lib/libc.so.6", LIBC), mapped("/opt/other lib.so", OTHER, 0x800)
    samples = [jumps(LIBC, LIBC + 0xFFF, OTHER), jumps(OTHER + 0x800), jumps(BASE + 0x2900)]
    assert outside(samples, *events) == {"libc.so.6": 2, "other lib.so": 1, "[unknown]": 1}


def test_of_half_records_the_known_end_counts() -> None:
    sample = Sample([(0, LIBC), (LIBC + 4, 0)])
    assert outside([sample], mapped("/lib/libc.so.6", LIBC)) == {"libc.so.6": 2}


def test_the_kernel_is_one_and_its_modules_are_many() -> None:
    events = (
        mapped("[kernel.kallsyms]_text", KERNEL, 0x10000, pid=-1),
        mapped("/lib/modules/6.1/net/nf.ko", KERNEL + 0x20000, pid=-1),
    )
    sample = jumps(KERNEL, KERNEL + 0x20010, KERNEL + 0x30000)
    assert outside([sample], *events) == {"[kernel]": 2, "nf.ko": 1}


@pytest.mark.parametrize("path", ["//anon", ""])
def test_memory_without_a_file_is_unknown(path: str) -> None:
    assert outside([jumps(LIBC)], mapped(path, LIBC)) == {"[unknown]": 1}


def test_a_mapping_over_another_hides_that_part_of_it() -> None:
    events = mapped("/a", LIBC, 0x3000), mapped("/b", LIBC + 0x1000, time=5)
    sample = jumps(LIBC + 0x800, LIBC + 0x1800, LIBC + 0x2800)
    assert outside([sample], *events) == {"a": 2, "b": 1}


def test_execve_takes_the_mappings_away() -> None:
    events = (
        mapped("/lib/old.so", LIBC, time=1),
        Comm(10, 10, 50, "new", is_exec=True),
        mapping(time=51),
        mapped("/lib/new.so", LIBC, time=52),
    )
    samples = [jumps(LIBC, time=40), jumps(LIBC, time=60), jumps(LIBC + 1, time=61)]
    assert outside(samples, *events) == {"old.so": 1, "new.so": 2}


def test_a_child_has_its_parents_files_and_keeps_its_own_to_itself() -> None:
    events = (
        mapped("/lib/shared.so", LIBC),
        Fork(11, 10, 11, 20),
        mapped("/lib/childs.so", OTHER, pid=11, time=30),
    )
    samples = [jumps(LIBC, OTHER), jumps(LIBC, OTHER, pid=11)]
    assert outside(samples, *events) == {"shared.so": 2, "childs.so": 1, "[unknown]": 1}


def test_what_a_parent_maps_later_is_not_its_childs() -> None:
    events = mapped("/a", LIBC), Fork(11, 10, 11, 20), mapped("/b", LIBC, time=30)
    samples = [jumps(LIBC, pid=pid) for pid in (10, 11)]
    assert outside(samples, *events, mapping(11)) == {"a": 1, "b": 1}


def test_samples_that_do_not_say_their_process_see_all_files() -> None:
    samples = [jumps(LIBC, OTHER, pid=-1)]
    events = mapped("/a", LIBC), mapping(11), mapped("/b", OTHER, pid=11)
    assert outside(samples, *events) == {"a": 1, "b": 1}


def test_without_mappings_there_is_no_list() -> None:
    layout = LAYOUT.__class__(LAYOUT.path, None, LAYOUT.machine, False, LAYOUT.segments)
    tallies = count(MemorySource([jumps(LIBC)]), layout).counts.tallies
    assert tallies["branches_in_image/outside"] == 1
    assert not waterfall.losses_of(tallies, "outside_in")


def test_what_lies_between_the_images_own_pieces_is_in_the_list() -> None:
    """Between its code and where something else was mapped over the rest of it."""
    hole = mapped("/lib/over.so", BASE + 0x3000, 0x100, time=5)
    sample = jumps(BASE + 0x3010)
    found = outside([sample], hole)
    assert sum(found.values()) == 1


def test_each_of_two_processes_has_files_of_its_own() -> None:
    elsewhere = mapping(11, BASE + 0x10000)
    events = elsewhere, mapped("/b", LIBC, pid=11), mapped("/a", LIBC)
    samples = [jumps(LIBC), jumps(LIBC, LIBC + 8, pid=11)]
    assert outside(samples, *events) == {"a": 1, "b": 2}


def test_of_any_process_the_later_mapping_over_the_earlier() -> None:
    files = MappedFiles(
        SpaceEventLog(
            [
                mapped("/a", LIBC, 0x3000),
                mapped("/b", LIBC + 0x1000, pid=11, time=5),
                mapped("/lib/modules/6.1/net/nf.ko", KERNEL, pid=-1),
            ]
        )
    )
    asked = [LIBC, LIBC + 0x1000, LIBC + 0x2000, OTHER, KERNEL, KERNEL + 0x1000]
    found = files.of_addresses(runtime_addresses(np.array(asked, np.uint64)))
    names = [files.names[number] for number in found.tolist()]
    assert names == ["a", "b", "a", "[unknown]", "nf.ko", "[kernel]"]


def test_where_children_have_too_much_what_any_process_mapped_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = (
        *(mapped("/lib/a.so", OTHER + 0x1000 * i) for i in range(8)),
        *(Fork(pid, 10, pid, 1) for pid in range(20, 30)),
        mapped("/lib/own.so", LIBC, pid=20, time=2),
    )
    samples = [jumps(OTHER, LIBC, pid=20), jumps(LIBC, pid=21)]
    assert outside(samples, *events) == {"a.so": 1, "own.so": 1, "[unknown]": 1}
    monkeypatch.setattr("lbr2pgo.counting.mapped_files.COPIED_MAPPINGS", Limit(0, 4))
    assert outside(samples, *events) == {"a.so": 1, "own.so": 2}


def test_another_thread_may_forget_what_this_one_just_found() -> None:
    class Forgetful(dict[int, object]):
        def __setitem__(self, key: int, value: object) -> None:
            """Keep nothing, as if another thread had cleared it."""

    files = MappedFiles(SpaceEventLog([mapped("/lib/libc.so.6", LIBC)]))
    files._spans = Forgetful()  # type: ignore[assignment]
    (file,) = files.of_addresses(runtime_addresses(np.array([LIBC], np.uint64)))
    assert files.names[file] == "libc.so.6"
