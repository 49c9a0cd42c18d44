"""Several files that are one recording."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import STATIC, STATIC_ENTRY, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.fleet.merge import MergeOptions, merge_files
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.profiles.registry import output
from lbr2pgo.sources.base import StackSource
from lbr2pgo.sources.series import open_recordings, size_of
from lbr2pgo.support.file_names import expanded

EVENT = Event()
STACK = (STATIC_ENTRY,) * 2
HOST, SAMPLE_TIME = 3, 21


def sample(pid: int, time: int) -> bytes:
    return Sample(STACK, pid=pid, tid=pid, time=time).encode(EVENT)


def mapped(pid: int, time: int) -> bytes:
    return build.mmap2(pid, 0x202000, 0xA0000, str(STATIC), EVENT.trailer(pid, pid, time))


def series(
    folder: Path, *records: tuple[int, bytes], hosts: Sequence[str] = ("here",) * 3
) -> list[Path]:
    paths = [folder / f"perf.data.202611221557{i:04}" for i in range(len(records))]
    for path, (first, content), host in zip(paths, records, hosts, strict=False):
        times = struct.pack("<QQ", first, first)
        features = {HOST: build.string(host), SAMPLE_TIME: times}
        path.write_bytes(build.file_form([EVENT], content, features))
    return paths


def counted(*paths: Path) -> tuple[int, int]:
    done = convert(ConvertOptions(paths, STATIC))
    return done.counts.branch_total(), done.tallies["samples_mapped/not_mapped"]


@pytest.fixture
def switched(tmp_path: Path) -> list[Path]:
    """A child's mapping is in the first file alone, as perf leaves it where it runs a command."""
    fork = build.fork(20, 10, 20, 50, EVENT.trailer(10, 10, 50))
    return series(
        tmp_path,
        (60, mapped(10, 5) + fork + sample(20, 60)),
        (110, mapped(10, 0) + sample(10, 110) + sample(20, 120)),
        (230, sample(20, 230)),
    )


def test_a_child_that_an_earlier_file_knows_is_found(switched: list[Path]) -> None:
    assert counted(*switched) == (8, 0)
    assert counted(*reversed(switched)) == (8, 0)
    lost = [counted(path)[1] for path in switched[:2]]
    assert lost == [0, 1]


def test_what_was_mapped_when_a_file_began_comes_after_the_files_before(tmp_path: Path) -> None:
    over = build.mmap2(10, 0x202000, 0xA0000, "/other.so", EVENT.trailer(10, 10, 0))
    paths = series(tmp_path, (60, mapped(10, 0) + sample(10, 60)), (110, over + sample(10, 110)))
    assert counted(*paths) == (2, 1)
    (recording,) = open_recordings(paths)
    assert isinstance(recording.source, StackSource)
    events = [e for e in recording.source.space_events() if isinstance(e, Mmap)]
    assert [event.path for event in events] == [str(STATIC), "/other.so"]


def test_they_are_called_by_the_name_that_perf_was_given(switched: list[Path]) -> None:
    (recording,) = open_recordings(switched)
    assert recording.name == str(switched[0].with_name("perf.data.*"))
    assert recording.source.info.path == recording.name
    assert size_of(recording.name) == sum(path.stat().st_size for path in switched)


def test_files_of_other_hosts_or_names_stay_apart(tmp_path: Path, switched: list[Path]) -> None:
    alone = tmp_path / "perf.data.old"
    alone.write_bytes(switched[0].read_bytes())
    assert len(open_recordings([*switched, alone])) == 2
    other = tmp_path / "hosts"
    other.mkdir()
    paths = series(other, (9, mapped(10, 5)), (9, mapped(10, 5)), hosts=["one", "two"])
    assert [each.name for each in open_recordings(paths)] == list(map(str, paths))
    assert len(open_recordings([switched[0]] * 2)) == 2  # given twice is meant twice
    again = series(other, (90, mapped(10, 5)), (9, mapped(10, 5)))  # started again in between
    assert len(open_recordings(again)) == 2


def test_a_merge_of_them_is_what_a_conversion_of_all_counts(
    switched: list[Path], tmp_path: Path
) -> None:
    ours, whole = tmp_path / "ours.npz", tmp_path / "whole.npz"
    convert(ConvertOptions(tuple(switched), STATIC, outputs=(output("counts", whole),)))
    merge_files(MergeOptions(tuple(switched), ours, binary=STATIC))
    assert ours.read_bytes() == whole.read_bytes()


def test_damage_of_all_files_is_told(switched: list[Path]) -> None:
    for path in switched[:2]:
        path.write_bytes(path.read_bytes()[:-150])
    (recording,) = open_recordings(switched)
    assert isinstance(recording.source, StackSource)
    assert sum(len(batch) for batch in recording.source.batches()) >= 1
    assert sum(recording.source.health().values()) > 0


def test_globs_mean_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = ["b.data", "a.data", "c[1].data"]
    for name in names:
        (tmp_path / name).write_bytes(recorded([STACK]))
    found = [path.name for path in expanded([tmp_path / "*.data", str(tmp_path / names[2])])]
    assert found == ["a.data", "b.data", "c[1].data", "c[1].data"]
    assert expanded([tmp_path / "none*"]) == (tmp_path / "none*",)


def test_perfs_own_series_is_one_recording(tool, tmp_path: Path) -> None:
    command = (
        tool("perf"), "record", "-q", "--switch-output=16K", "-e", "cpu-clock:u", "-F", "9999",
        "-o", tmp_path / "p", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
    )  # fmt: skip
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("perf record is not permitted here")
    paths = expanded([tmp_path / "p.*"])
    assert len(paths) > 1
    (recording,) = open_recordings(paths)
    assert isinstance(recording.source, StackSource)
    apart = [each for path in paths for each in open_recordings([path])]
    samples = [
        sum(len(batch) for batch in each.source.batches())
        for each in (recording, *apart)
        if isinstance(each.source, StackSource)
    ]
    assert samples[0] == sum(samples[1:]) > 0
