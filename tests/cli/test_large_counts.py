"""Counts near 2**63 and 2**64: what is written is right or saturated, and nothing wraps around."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.llvm import extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.support.sums import LARGEST

PROGRAM = TESTBINS / "x86-64" / "shapes.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"


@pytest.fixture
def traces(command, tmp_path: Path) -> list[str]:
    """Rows of a real recording, without their counts."""
    path = tmp_path / "traces"
    assert command("convert", RECORDING, "--binary", PROGRAM, "--preaggregated", path).code == 0
    rows = [line for line in path.read_text().splitlines() if line.startswith("T ")]
    return [line.rpartition(" ")[0] for line in rows]


@pytest.fixture
def written(command, tmp_path: Path):
    """Convert text in all ways, as an answer and the folder."""

    def convert(text: str, *more: object):
        path = tmp_path / "input"
        path.write_text(text)
        out = [word for name in ("llvm", "fdata", "counts", "preaggregated", "unsymbolized")
               for word in (f"--{name}", tmp_path / f"out.{name}")]  # fmt: skip
        return command("convert", path, *more, "--binary", PROGRAM, *out)

    return convert


def numbers(line: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+$", line)]


def test_totals_saturate_where_each_count_fits(
    command, traces: list[str], written, tmp_path: Path, run, tool
) -> None:
    each = (2**63 - 1) // len(traces)
    answer = written("".join(f"{row} {each}\n" for row in traces))
    assert answer.code == 0
    profile = llvm_text.read(tmp_path / "out.llvm")
    totals = [function.total for function in profile.functions.values()]
    assert max(totals) == LARGEST
    for function in profile.functions.values():
        assert function.total >= max(function.body.values(), default=0)
        assert all(n % each == 0 or n == LARGEST for n in function.body.values())
    assert max(n for f in profile.functions.values() for n in f.body.values()) >= each
    rows = fdata_text.read(tmp_path / "out.fdata").branches
    assert rows is not None
    assert all(n % each == 0 and n for n in rows.count.tolist())
    assert all(n[-1] % each == 0 for n in map(numbers, _lines(tmp_path / "out.preaggregated")))
    # What is written is read, and gives the same again.
    again = tmp_path / "again"
    for name in ("counts", "preaggregated"):
        words = [tmp_path / f"out.{name}", "--binary", PROGRAM, "--llvm", again]
        assert command("convert", *words).code == 0
        assert again.read_bytes() == (tmp_path / "out.llvm").read_bytes()
    words = ["--binary", PROGRAM, "--llvm", again, "--llvm-format", "extbinary"]
    assert command("convert", tmp_path / "out.counts", *words).code == 0
    assert extbinary.read(again).functions == profile.functions
    merged = tmp_path / "merged"
    run(tool("llvm-profdata-22"), "merge", "--sample", "--text", again, "-o", merged)
    assert llvm_text.read(merged).functions == profile.functions


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("T ")]


@pytest.mark.parametrize("count", [2**63 - 1, 2**63, 2**64 - 20])
def test_what_adds_up_to_too_much_is_refused(
    written, traces: list[str], tmp_path: Path, count: int
) -> None:
    answer = written(f"{traces[0]} {count}\n{traces[1]} {count}\n")
    assert answer.code == 2
    assert f"{tmp_path / 'input'}: the counts add up to 2**63 or more" in answer.err
    assert sorted(path.name for path in tmp_path.glob("out.*")) == []


def test_merging_refuses_too_much(command, written, traces: list[str], tmp_path: Path) -> None:
    half = tmp_path / "half.npz"
    text = f"{traces[0]} {2**62}\n"
    assert written(text).code == 0
    (tmp_path / "out.counts").rename(half)
    for path in tmp_path.glob("out.*"):
        path.unlink()
    assert written(text, half).code == 2
    assert written(f"{traces[0]} {2**62 - 1}\n", half).code == 0


@pytest.mark.parametrize("count", [2**62, 2**63, 2**64 - 7])
def test_aggregated_text_is_refused_before_its_counts_wrap(written, count: int) -> None:
    """Four entries of a sample that was seen so often; of which two can't be."""
    sample = "\n7f0000001000 0x1820/0x1800/P/-/-/0 0x1820/0x1800/P/-/-/0\n"
    assert written(f"{count}{sample}{2**64 - count}{sample}").code == 2
