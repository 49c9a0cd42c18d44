"""`lbr2pgo merge`."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo


def test_the_share_of_each_build_is_told(command, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_text("B 22a8da 22a8c0 7 1\n")
    first = command("merge", "-o", tmp_path / "a.parquet", RECORDING, small, "--binary", PIE)
    assert first.code == 0
    header, row = first.out.splitlines()
    assert header.split() == ["build-id", "files", "traces", "branches", "share"]
    assert row.split()[1] == "2"
    assert row.endswith("100.00%")
    assert first.err.startswith(f"wrote {tmp_path / 'a.parquet'} (")
    assert command("merge", "-o", tmp_path / "b.npz", tmp_path / "a.parquet", "--quiet").out == ""


def test_a_weight_multiplies(command, tmp_path: Path) -> None:
    counts = tmp_path / "a.npz"
    command("convert", RECORDING, "--binary", PIE, "--counts", counts)
    answer = command("merge", "-o", tmp_path / "b.npz", counts, "--weight", f"{counts}=3")
    assert answer.code == 0
    one, three = (
        sum(c.branch_total() for c, _ in lbr2pgo.open(path).builds())  # type: ignore[union-attr]
        for path in (counts, tmp_path / "b.npz")
    )
    assert three == 3 * one


@pytest.mark.parametrize("word", ["x.npz", "x.npz=", "x.npz=0", "x.npz=-1", "x.npz=1e9", "=2"])
def test_a_weight_that_is_none_is_refused(command, word: str) -> None:
    answer = command("merge", "-o", "all.npz", "x.npz", "--weight", word)
    assert answer.code == 2
    assert "--weight" in answer.err


def test_the_sum_may_go_to_standard_output(command, tmp_path: Path) -> None:
    profile = tmp_path / "x.prof"
    profile.write_text("main:1:1\n 1: 1\n")
    assert command("merge", "-o", "-", profile, profile).out == "main:2:2\n 1: 2\n"


@pytest.mark.parametrize("option", ["--counts", "--fdata"])
def test_a_file_that_comes_twice_is_a_warning(command, tmp_path: Path, option: str) -> None:
    one, copy = tmp_path / "one.npz", tmp_path / "copy.npz"
    command("convert", RECORDING, "--binary", PIE, option, one)
    copy.write_bytes(one.read_bytes())
    answer = command("merge", "-o", tmp_path / "all.npz", one, copy)
    assert answer.err.startswith(f"warning: {copy} holds the same as {one}: its samples count")
