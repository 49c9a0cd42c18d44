"""`lbr2pgo fleet`."""

from __future__ import annotations

import json
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
from builders.recordings import STATIC, STATIC_ENTRY, recorded

pytest.importorskip("pyarrow")


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    folder = tmp_path / "bucket"
    folder.mkdir()
    for number in (1, 2):
        path = str(STATIC.resolve())
        (folder / f"{number}.data").write_bytes(recorded([[STATIC_ENTRY] * number], path=path))
    return folder


def test_files_and_builds_are_told(command, bucket: Path, tmp_path: Path) -> None:
    words = ("fleet", bucket, "-o", tmp_path / "all.parquet", "--fdata", tmp_path / "{name}.fdata")
    answer = command(*words)
    assert answer.code == 0
    first, _, build = answer.out.splitlines()
    assert first == "files: 2 counted, 0 duplicates, 0 other hosts, 0 too old, 0 unreadable"
    assert build.split()[1] == "2"
    assert (tmp_path / "interp.static.fdata").read_text() == "1 main 1ea 1 main 1d0 0 3\n"
    assert f"wrote {tmp_path / 'interp.static.fdata'}" in answer.err


def test_an_unreadable_file_is_in_the_report_and_the_exit_code(
    command, bucket: Path, tmp_path: Path
) -> None:
    (bucket / "junk").write_text("junk")
    answer = command("fleet", bucket, "-o", tmp_path / "all.parquet", "--report", "-")
    assert answer.code == 2
    told = json.loads(answer.out)
    assert [len(told["files"][kind]) for kind in ("counted", "unreadable")] == [2, 1]
    assert "no profile" in told["files"]["unreadable"][0]["problem"]
    assert told["builds"][0]["branches"] == 3
    assert f"not counted: {bucket / 'junk'}: is no profile" in answer.err


def test_a_half_life_is_a_number_of_days(command, bucket: Path, tmp_path: Path) -> None:
    words = ("fleet", bucket, "-o", tmp_path / "all.parquet")
    assert command(*words, "--half-life", "soon").code == 2
    assert command(*words, "--half-life", "7").code == 0


@pytest.fixture(scope="module")
def _tracker() -> None:
    """Python's own process that watches those it started: it ends with this one."""
    resource_tracker.ensure_running()


@pytest.mark.slow
@pytest.mark.usefixtures("_tracker")
def test_a_worker_makes_the_same_bytes_with_a_link_and_progress(
    command, bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("lbr2pgo.cli.fleet._PAUSE", 0)
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    assert command("fleet", bucket, "-o", here).code == 0
    answer = command("fleet", bucket, "-o", there, "--workers", "1")
    assert answer.code == 0
    assert there.read_bytes() == here.read_bytes()
    link, *told = answer.err.splitlines()
    assert link.startswith("watch it at http://")
    assert told[:2] == [f"{n} of 2 files done, 0 counted before" for n in (1, 2)]
