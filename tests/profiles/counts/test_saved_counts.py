from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from lbr2pgo.model.branch_counts import BRANCH, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.counts.saved_counts import write
from lbr2pgo.sources.saved_counts import COLUMNS, HEADER
from lbr2pgo.support.errors import OutputError


@pytest.fixture
def counts() -> BranchCounts:
    rows = np.array([[0x10, 0x20, 0], [0x30, 0x10, 0]], np.uint64)
    known = np.full(2, BRANCH | FROM | TO, np.uint8)
    made = aggregate(*rows.T, known, np.array([3, 4], np.uint64), np.zeros(2, np.uint64))
    return replace(made, build_id="ab", tallies={"b": 1, "a": 2})


def written(counts: BranchCounts) -> bytes:
    stream = io.BytesIO()
    write(counts, stream)
    return stream.getvalue()


def test_equal_counts_are_equal_bytes_in_whatever_order_they_were_tallied(
    counts: BranchCounts,
) -> None:
    assert written(counts) == written(replace(counts, tallies={"a": 2, "b": 1}))
    assert written(counts) != written(replace(counts, tallies={"a": 2, "b": 2}))


def test_numpy_reads_the_columns(counts: BranchCounts) -> None:
    saved = np.load(io.BytesIO(written(counts)), allow_pickle=False)
    assert saved.files == [HEADER, *COLUMNS]
    assert json.loads(saved[HEADER].tobytes())["version"] == 2
    for name, dtype in COLUMNS.items():
        assert saved[name].dtype == dtype
        assert saved[name].tolist() == getattr(counts, name).tolist()


def test_no_time_is_kept(counts: BranchCounts) -> None:
    members = zipfile.ZipFile(io.BytesIO(written(counts))).infolist()
    assert {member.date_time for member in members} == {(1980, 1, 1, 0, 0, 0)}


def test_a_place_that_can_not_be_written_is_said(counts: BranchCounts, tmp_path) -> None:
    with pytest.raises(OutputError):
        write(counts, tmp_path / "nowhere" / "counts")
