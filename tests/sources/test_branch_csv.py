"""Single branch records as CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.sources import LAYOUT

from lbr2pgo.counting.count import count
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Sniff, StackSource
from lbr2pgo.sources.branch_csv import BranchCsv, sniff
from lbr2pgo.support.errors import InputError

A, B, C = 0x2800, 0x2810, 0x2820


def written(path: Path, text: str) -> BranchCsv:
    path.write_text(text)
    source = open_source(path)
    assert isinstance(source, BranchCsv)
    assert isinstance(source, StackSource)
    return source


@pytest.mark.parametrize(
    "text",
    [
        "from,to,mispredict\n0x2800,0x2810,1\n0x2810,0x2820,0\n",
        "To,MISPREDICTED,From\n2810,Y,2800\n2820,N,2810\n",
        '"Mispred:","Source Address","Target_Address"\n"M",0x2800,0x2810\nP,2810,2820\n\n',
        "predicted,from_ip,to_ip\nno,0x2800,0x2810\nyes,0x2810,0x2820\n",
    ],
)  # fmt: skip
def test_columns_are_found_by_name(tmp_path: Path, text: str) -> None:
    (batch,) = written(tmp_path / "records.csv", text).batches()
    assert batch.entries.tolist() == [[A, B, 1], [B, C, 2]]
    assert batch.offsets.tolist() == [0, 1, 2]


def test_neighbours_make_no_fall_through(tmp_path: Path) -> None:
    source = written(
        tmp_path / "records.csv", "from,to,mispredict,count\n0x2820,0x2800,1,3\n0x2810,0x2820,0,1\n"
    )
    counts = count(source, LAYOUT).counts
    assert len(counts.runs()) == 0
    branches = counts.branches()
    assert branches.count.tolist() == [1, 3]
    assert branches.mispredicted.tolist() == [0, 3]
    assert counts.tallies["samples_read"] == 4


def test_without_a_prediction_nothing_is_claimed(tmp_path: Path) -> None:
    (batch,) = written(tmp_path / "records.csv", "from,to\n0x2800,0x2810\n").batches()
    assert batch.flags.tolist() == [0]


def test_damaged_rows_are_counted(tmp_path: Path) -> None:
    text = "from,to,mispredict\n0x2800,0x2810,1\nzero,0x2810,1\n0x2800\n0x2800,0x2810,maybe\n"
    source = written(tmp_path / "records.csv", text + f"{1 << 64:x},0,0\n-1,0,0\n1_0,0,0\n")
    assert [len(batch) for batch in source.batches()] == [1]
    assert source.health() == {"damaged: rows that hold no branch": 6}


def test_many_records_come_in_batches(tmp_path: Path) -> None:
    text = "from,to\n" + "0x2800,0x2810\n" * 40_000
    assert sum(len(batch) for batch in written(tmp_path / "records.csv", text).batches()) == 40_000


def test_a_file_whose_header_vanished_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("from,where\n1,2\n")
    with pytest.raises(InputError, match="no header with a source and a target"):
        list(BranchCsv(path).batches())


@pytest.mark.parametrize(
    ("head", "answer"),
    [(b"from,to\n", Sniff.YES), (b"\n\nFROM , TO\n1,2\n", Sniff.YES), (b"from to\n", Sniff.NO),
     (b"a,b\nfrom,to\n", Sniff.NO), (b"\0from,to", Sniff.NO), (b"", Sniff.NO)],
)  # fmt: skip
def test_recognises_it_by_its_header(head: bytes, answer: Sniff) -> None:
    assert sniff(head) is answer
