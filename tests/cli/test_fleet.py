"""`lbr2pgo fleet`."""

from __future__ import annotations

import json
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
    assert "not counted" in answer.err


def test_a_half_life_is_a_number_of_days(command, bucket: Path, tmp_path: Path) -> None:
    words = ("fleet", bucket, "-o", tmp_path / "all.parquet")
    assert command(*words, "--half-life", "soon").code == 2
    assert command(*words, "--half-life", "7").code == 0
