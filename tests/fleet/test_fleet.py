"""Many files counted, added up and written: in threads, in processes, with workers that die."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from time import time
from urllib.request import urlopen

import pytest
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING, STATIC, STATIC_BUILD_ID, STATIC_ENTRY, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.fleet import counting
from lbr2pgo.fleet.counting import CountingPlan, FileOutcome
from lbr2pgo.fleet.fleet import Fleet, FleetOptions, _count, run_fleet
from lbr2pgo.fleet.fleet_files import FleetFile, fleet_files
from lbr2pgo.fleet.runners import Threads, runner
from lbr2pgo.model.doubts import parted
from lbr2pgo.profiles.registry import output
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError, OutputError

pytest.importorskip("pyarrow")

DAY = 86400


@pytest.fixture
def bucket(hosts: list[Path], tmp_path: Path) -> Path:
    """Three hosts of one program, in folders, all written at the same time."""
    for number, host in enumerate(hosts):
        there = tmp_path / "bucket" / f"host{number}" / "perf.data"
        there.parent.mkdir(parents=True)
        shutil.copy(host, there)
        os.utime(there, (10 * DAY, 10 * DAY))
    return tmp_path / "bucket"


def options(tmp_path: Path, *inputs: object, name: str = "all", **others: object) -> FleetOptions:
    plan = CountingPlan(tmp_path / "store", (STATIC, PIE))
    words = tuple(map(str, inputs))
    return FleetOptions(words, tmp_path / f"{name}.parquet", plan, **others)  # type: ignore[arg-type]


def names(outcomes: tuple[FileOutcome, ...]) -> list[str]:
    return [Path(each.file.name).parent.name for each in outcomes]


def branches(done: Fleet) -> dict[str | None, int]:
    return {build.counts.build_id: build.counts.branch_total() for build in done.merge.builds}


def test_a_fleet_is_a_conversion_of_all_its_files(
    bucket: Path, hosts: list[Path], tmp_path: Path
) -> None:
    fdata, whole = tmp_path / "{name}.fdata", tmp_path / "whole"
    done = run_fleet(options(tmp_path, bucket, profiles=outputs(fdata=fdata)), Threads())
    convert(ConvertOptions(tuple(hosts), STATIC, outputs=outputs(fdata=whole)))
    assert (tmp_path / "interp.static.fdata").read_bytes() == whole.read_bytes()
    assert names(done.counted) == ["host0", "host1", "host2"]
    (build,) = done.merge.builds
    assert (build.counts.build_id, build.files) == (STATIC_BUILD_ID, 3)


def test_what_was_counted_is_not_counted_again(
    bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_fleet(options(tmp_path, bucket / "host0", bucket / "host1"), Threads())
    read: list[object] = []
    replay = counting.replay_images
    monkeypatch.setattr(
        counting, "replay_images", lambda *a, **k: read.append(a) or replay(*a, **k)
    )
    done = run_fleet(options(tmp_path, bucket), Threads())
    assert len(read) == 1
    assert [each.was_there for each in done.counted] == [True, True, False]
    fresh = options(tmp_path / "other", bucket)
    (tmp_path / "other").mkdir()
    run_fleet(fresh, Threads())
    assert fresh.output.read_bytes() == (tmp_path / "all.parquet").read_bytes()


def test_files_that_cannot_be_read_are_listed_and_duplicates_count_once(
    bucket: Path, tmp_path: Path
) -> None:
    shutil.copytree(bucket / "host0", bucket / "host3")
    (bucket / "text").mkdir()
    (bucket / "text" / "x").write_text("no recording")
    whole = (bucket / "host2" / "perf.data").read_bytes()
    (bucket / "host2" / "perf.data").write_bytes(whole[:-40])
    done = run_fleet(options(tmp_path, bucket), Threads())
    assert names(done.counted) == ["host0", "host1", "host2"]
    assert names(done.duplicates) == ["host3"]
    assert names(done.unreadable) == ["text"]
    assert "no profile of a known format" in str(done.unreadable[0].problem)
    assert any("truncated" in doubt for doubt in parted(done.counted[2].notes)[0])
    twice = run_fleet(options(tmp_path, bucket, keeps_duplicates=True), Threads())
    assert sum(branches(twice).values()) == sum(branches(done).values()) + 3


def test_builds_stay_apart_and_counts_are_taken_as_they_are(bucket: Path, tmp_path: Path) -> None:
    counts = bucket / "counts.npz"
    done = convert(ConvertOptions((RECORDING,), PIE, outputs=(output("counts", counts),)))
    found = run_fleet(options(tmp_path, bucket), Threads())
    assert len(found.merge.builds) == 2
    assert branches(found)[done.counts.build_id] == done.counts.branch_total()


def test_older_files_weigh_less(bucket: Path, tmp_path: Path) -> None:
    for number, days in enumerate((10, 3, 3)):
        os.utime(bucket / f"host{number}" / "perf.data", (days * DAY, days * DAY))
    one = {n: run_fleet(options(tmp_path, bucket / f"host{n}"), Threads()) for n in range(3)}
    alone = [sum(branches(done).values()) for done in one.values()]
    done = run_fleet(options(tmp_path, bucket, half_life=Fraction(7)), Threads())
    assert sum(branches(done).values()) == pytest.approx(alone[0] + sum(alone[1:]) / 2, abs=2)
    os.utime(bucket / "host1" / "perf.data", (0, 0))
    gone = run_fleet(options(tmp_path, bucket, half_life=Fraction(1, 2)), Threads())
    assert names(gone.too_old) == ["host1"]


def test_a_clock_that_runs_ahead_makes_no_other_file_old(bucket: Path, tmp_path: Path) -> None:
    week = options(tmp_path, bucket, half_life=Fraction(7))
    now = int(time())
    for number in range(3):
        os.utime(bucket / f"host{number}" / "perf.data", (now, now - 2))
    right = branches(run_fleet(week, Threads()))
    ahead = now + 3650 * DAY
    os.utime(bucket / "host1" / "perf.data", (ahead, ahead))
    done = run_fleet(week, Threads())
    assert branches(done) == right
    assert not done.too_old
    assert [any("future" in note for note in each.notes) for each in done.counted] == [
        False, True, False
    ]  # fmt: skip


def test_a_million_files_take_a_few_hundred_bytes_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here 5,000; each has the same notes and programs, as those of one fleet have."""
    for folder in range(5):
        (tmp_path / f"{folder:04}").mkdir()
        for number in range(1000):
            (tmp_path / f"{folder:04}" / f"host-{number}.data").touch()

    def done(file: FleetFile, plan: CountingPlan) -> FileOutcome:
        told = [str(value) for value in (plan.store, PIE, "host")]
        content = hashlib.sha256(file.name.encode()).hexdigest()
        return FileOutcome(file, content, (told[2],), ((told[1], told[0]),), (told[0],))

    monkeypatch.setattr("lbr2pgo.fleet.fleet.count_file", done)
    wanted = options(tmp_path, *tmp_path.glob("0*"))
    tracemalloc.start()
    try:
        outcomes = _count(wanted, Threads(), lambda *_: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(outcomes) == 5_000
    assert [each.file for each in outcomes] == sorted(each.file for each in outcomes)
    assert peak < 5_000 * 800


def test_sums_of_sums_are_the_same(
    bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = options(tmp_path, bucket, name="once", half_life=Fraction(7))
    os.utime(bucket / "host1" / "perf.data", (3 * DAY, 3 * DAY))
    for number in range(3):  # five files: three sums, two sums of sums, and all
        more = bucket / f"more{number}.data"
        more.write_bytes(recorded([[STATIC_ENTRY] * (number + 4)]))
        os.utime(more, (number * DAY, number * DAY))
    wanted = run_fleet(at_once, Threads()).merge
    monkeypatch.setattr("lbr2pgo.fleet.fleet._GROUP", 2)
    in_groups = options(tmp_path, bucket, name="groups", half_life=Fraction(7))
    merge = run_fleet(in_groups, Threads()).merge
    assert [each.files for each in merge.builds] == [each.files for each in wanted.builds]
    assert max(each.files for each in merge.builds) > 2
    assert in_groups.output.read_bytes() == at_once.output.read_bytes()
    assert not list((tmp_path / "store").glob("part-*"))


def test_hosts_are_chosen_by_pattern(tmp_path: Path) -> None:
    counts = tmp_path / "in" / "a.parquet"
    counts.parent.mkdir()
    convert(ConvertOptions((RECORDING,), PIE, outputs=(output("counts", counts),)))
    host = open_source(counts).info.details["host"]
    done = run_fleet(options(tmp_path, counts, hosts=(f"{host[:2]}*",)), Threads())
    assert len(done.counted) == 1
    with pytest.raises(InputError, match="no file is left"):
        run_fleet(options(tmp_path, counts, hosts=("elsewhere-*",)), Threads())


def test_builds_are_chosen_by_how_their_ids_begin(
    bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bucket / "other").mkdir()
    shutil.copy(RECORDING, bucket / "other" / "perf.data")
    both = run_fleet(options(tmp_path, bucket), Threads())
    assert len(both.merge.builds) > 1
    monkeypatch.setattr("lbr2pgo.fleet.fleet._GROUP", 2)
    one = run_fleet(options(tmp_path, bucket, builds=(STATIC_BUILD_ID[:6],)), Threads())
    assert branches(one) == {STATIC_BUILD_ID: branches(both)[STATIC_BUILD_ID]}
    with pytest.raises(InputError, match="hold no counts"):
        run_fleet(options(tmp_path, bucket, builds=("beef",)), Threads())


def test_inputs_may_be_globs_and_urls(bucket: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    found = [
        [Path(file.name.removeprefix("file://")) for file in fleet_files([str(word)])]
        for word in (bucket, f"{bucket}/*/perf.data", f"file://{bucket}", f"file://{bucket}/*/*")
    ]
    assert len(found[0]) == 3
    assert found == [found[0]] * 4
    (bucket / ".hidden").touch()
    assert len(fleet_files([str(bucket), str(bucket)])) == 3
    done = run_fleet(options(tmp_path, f"file://{bucket}"), Threads())
    assert len(done.counted) == 3


def test_a_directory_of_threads_is_one_recording(bucket: Path, tmp_path: Path) -> None:
    folder = bucket / "threads"
    folder.mkdir()
    (folder / "data").write_bytes((bucket / "host1" / "perf.data").read_bytes())
    (folder / "data.0").write_bytes(b"")
    (folder / "notes.txt").write_text("beside it")
    done = run_fleet(options(tmp_path, bucket), Threads())
    assert [each.file.name for each in done.duplicates] == [str(folder)]
    assert [each.file.name for each in done.unreadable] == [str(folder / "notes.txt")]


def test_what_is_no_file_is_listed_and_not_waited_for(bucket: Path, tmp_path: Path) -> None:
    expected = len(run_fleet(options(tmp_path, bucket, name="before"), Threads()).counted)
    os.mkfifo(bucket / "pipe")
    (bucket / "endless").symlink_to("/dev/zero")
    (bucket / "gone").symlink_to(tmp_path / "nowhere")
    threads = bucket / "threads"
    threads.mkdir()
    (threads / "data").write_bytes(b"")
    os.mkfifo(threads / "data.0")
    done = run_fleet(options(tmp_path, bucket), Threads())
    assert len(done.counted) == expected
    told = {Path(each.file.name).name: each.problem for each in done.unreadable}
    assert told == {
        "pipe": "is no regular file",
        "endless": "is no regular file",
        "gone": f"[Errno 2] No such file or directory: '{bucket / 'gone'}'",
        "threads": f"{threads / 'data.0'}: is no regular file",
    }


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not there"):
        fleet_files([str(tmp_path / "missing")])
    with pytest.raises(InputError, match="there are no files"):
        fleet_files([str(tmp_path)])
    with pytest.raises(OutputError, match="which holds several builds"):
        FleetOptions(("x",), tmp_path / "x.npz", CountingPlan(tmp_path))
    (tmp_path / "x").write_text("junk")
    with pytest.raises(InputError, match="no file is left"):
        run_fleet(options(tmp_path, tmp_path / "x"), Threads())


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two worker processes under a real scheduler, which starts lost ones again."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="localhost:0"
    ) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_cluster_makes_the_same_bytes_though_a_worker_is_killed(cluster, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    for number in range(24):
        entries = [STATIC_ENTRY] * (number % 5 + 1)
        (bucket / f"{number:02}.data").write_bytes(recorded([entries] * (number + 1)))
    here = options(tmp_path, bucket, name="here")
    run_fleet(here, Threads())
    shutil.rmtree(tmp_path / "store")
    there = options(tmp_path, bucket, name="there")
    killed: list[int] = []

    def kill_one(*_: object) -> None:
        if not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)

    with runner(None, cluster.scheduler_address) as where:
        done = run_fleet(there, where, kill_one)
    assert killed
    assert len(done.counted) == 24
    assert there.output.read_bytes() == here.output.read_bytes()


@pytest.mark.slow
def test_the_link_of_a_cluster_answers_while_files_are_counted(
    cluster, bucket: Path, tmp_path: Path
) -> None:
    answers: list[tuple[int, int]] = []
    with runner(None, cluster.scheduler_address) as where:
        link = where.link
        assert link is not None

        def look(_: FileOutcome, files: int) -> None:
            with urlopen(link) as page:
                answers.append((page.status, files))

        run_fleet(options(tmp_path, bucket), where, look)
    assert answers == [(200, 3)] * 3


_SCHEDULER = """
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told_and_the_next_run_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    bucket, script = tmp_path / "bucket", tmp_path / "scheduler.py"
    bucket.mkdir()
    for number in range(24):
        recording = recorded([[STATIC_ENTRY] * (number % 5 + 1)] * (number + 1))
        (bucket / f"{number:02}.data").write_bytes(recording)
    script.write_text(_SCHEDULER)
    cluster = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip

    def kill_all(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(cluster.pid, signal.SIGKILL)

    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        wanted = options(tmp_path, bucket)
        with pytest.raises(InputError, match="went away"), runner(None, address) as where:
            run_fleet(wanted, where, kill_all)
    finally:
        kill_all()
        cluster.communicate()
    assert not wanted.output.exists()
    done = run_fleet(wanted, Threads())
    assert len(done.counted) == 24
    assert any(each.was_there for each in done.counted)


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("lbr2pgo.fleet.runners._PATIENCE", 1)
    with pytest.raises(InputError, match="does not answer"), runner(None, "tcp://127.0.0.1:9"):
        pass
