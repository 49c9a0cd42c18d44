"""Pre-aggregated profiles as we write them, judged by our reader and by perf2bolt."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.compat import AS_PERF2BOLT
from builders.fixtures import Corpus, Tool
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    OUTSIDE,
    RETURN,
    TO,
    BranchCounts,
    aggregate,
)
from lbr2pgo.profiles.preaggregated.traces_text import write
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.preaggregated import Preaggregated

LAYOUT = ImageLayout("x", None, "x86-64", False, (Segment(0x1000, 0, 0x100, 0x100, True),))
BRANCHES = (BRANCH | FROM | TO, BRANCH | TO, BRANCH | FROM, BRANCH | FROM | TO | END)
RUNS = (TO | END, TO | END | OUTSIDE, TO | END | OUTSIDE | RETURN)
RETURNS = (BRANCH | FROM | TO | END | RETURN, BRANCH | TO | END | RETURN)

address = st.integers(0x1000, 0x10FF)


def counts_of(rows: list[tuple[int, int, int, int, int, int]]) -> BranchCounts:
    columns = list(zip(*rows, strict=True)) or [[]] * 6
    from_, to, end, known, count, missed = (np.array(c, dtype=np.uint64) for c in columns)
    return aggregate(from_, to, end, known.astype(np.uint8), count, np.minimum(missed, count))


def text_of(counts: BranchCounts) -> str:
    stream = io.BytesIO()
    write(counts, stream)
    return stream.getvalue().decode()


def test_the_form_of_the_rows() -> None:
    rows = [
        (0x1010, 0x1020, 0x1030, BRANCH | FROM | TO | END, 5, 2),
        (0x1010, 0x1020, 0, BRANCH | FROM | TO, 3, 1),
        (0, 0x1020, 0x1030, BRANCH | TO | END, 4, 0),
        (0x1012, 0x1020, 0x1030, BRANCH | FROM | TO | END, 6, 6),
        (0x1014, 0, 0, BRANCH | FROM, 7, 0),
        (0x1016, 0x1020, 0, BRANCH | FROM | TO | RETURN, 7, 0),
        (0x1016, 0x1020, 0x1040, BRANCH | FROM | TO | END | RETURN, 8, 0),
        (0, 0x1020, 0x1030, TO | END, 9, 0),
        (0, 0x1020, 0x1030, TO | END | OUTSIDE, 10, 0),
        (0, 0x1020, 0x1030, TO | END | OUTSIDE | RETURN, 11, 0),
    ]
    assert text_of(counts_of(rows)).splitlines() == [
        "T 0 1020 1030 4",
        "T 1010 1020 1030 5",
        "T 1012 1020 1030 6",
        "R 1016 1020 ffffffffffffffff 7",
        "R 1016 1020 1040 8",
        "B 1010 1020 3 3",
        "B 1012 1020 0 6",
        "B 1014 0 7 0",
        "F 1020 1030 9",
        "f 1020 1030 10",
        "r 1020 1030 11",
    ]


def test_no_counts_make_no_rows() -> None:
    assert text_of(counts_of([])) == ""


@given(
    st.lists(
        st.tuples(address, address, address, st.sampled_from(BRANCHES + RUNS + RETURNS),
                  st.integers(1, 2**40), st.integers(0, 2**40)),
        max_size=30,
    )
)  # fmt: skip
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int, int, int, int]]
) -> None:
    rows = [(*row[:5], row[5] if row[3] in BRANCHES else 0) for row in rows]
    counts = counts_of(rows)
    path = tmp_path_factory.getbasetemp() / "p.preagg"
    write(counts, path)
    again = Preaggregated(path).counts(LAYOUT)
    for name in ("from_", "to", "end", "known", "count"):
        assert np.array_equal(getattr(counts, name), getattr(again, name)), name
    ours, theirs = counts.branches(), again.branches()
    assert np.array_equal(ours.mispredicted, theirs.mispredicted)
    assert (again.mispredicted <= again.count).all()


def perf2bolt(
    tool: Tool, rows: Path, binary: Path
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    fdata = rows.with_suffix(".fdata")
    command = [tool("perf2bolt-22"), "-pa", "-p", str(rows), "-o", str(fdata), str(binary)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done, sorted(fdata.read_text().splitlines())


@pytest.mark.slow
def test_perf2bolt_makes_the_same_of_traces_as_of_the_samples(
    tmp_path: Path, corpus: Corpus, tool: Tool
) -> None:
    from lbr2pgo.counting.count import count
    from lbr2pgo.program.elf.image import Image
    from lbr2pgo.sources.perf_data import reader as perf_data

    binary = corpus("sqlite/sq.zst")
    source = perf_data.FORMAT.open(corpus("sqlite/sq.perf.data.zst"))
    counts = count(source, Image.open(binary).layout).counts
    write(counts, tmp_path / "sq.preagg")
    _, fdata = perf2bolt(tool, tmp_path / "sq.preagg", binary)
    expected = corpus("sqlite/sq.perf2bolt-22.fdata.zst").read_text().splitlines()
    assert fdata == sorted(expected)


def test_perf2bolt_takes_every_kind_of_row(
    tmp_path: Path, tool: Tool, run: Callable[..., object]
) -> None:
    from lbr2pgo.program.elf.image import Image

    source = tmp_path / "x.c"
    source.write_text('int main(int n, char **v) { while (n++ < 9) __asm__("nop"); return n; }')
    binary = tmp_path / "x"
    run(tool("clang-22"), "-fuse-ld=lld-22", "-Wl,--emit-relocs", "-O1", source, "-o", binary)
    start = next(s.address for s in Image.open(binary).sections if s.name == ".text")
    rows = [
        (start, start, start, known, 3, 1) for known in (*BRANCHES, *RUNS, *RETURNS)
    ]  # fmt: skip
    counts = counts_of(rows)
    write(counts, tmp_path / "x.preagg")
    done, _ = perf2bolt(tool, tmp_path / "x.preagg", binary)
    lines = len((tmp_path / "x.preagg").read_text().splitlines())
    assert f"read {lines} aggregated brstack entries" in done.stdout
    assert "error" not in (done.stdout + done.stderr).lower()


UNKNOWN_END = 2**64 - 1
"""Trace::BR_ONLY: perf2bolt 22 reads it as a hexadecimal number only."""


@pytest.mark.parametrize("letter", "TRBFfr")
def test_each_kind_of_row_gives_perf2bolts_fdata(letter: str, tmp_path: Path, tool: Tool) -> None:
    from builders.bolt import RandomTraces, lines_of
    from builders.recordings import PIE

    from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
    from lbr2pgo.program.program import Program

    program, rows = Program.open(PIE), tmp_path / "rows.preagg"
    traces = RandomTraces(program, seed=5).draw(1500)
    text = "E cycles:u\n"
    for source, target, end, number in traces:
        addresses = (source or 0, target or 0, UNKNOWN_END if end is None else end)
        kept = {"B": addresses[:2]}.get(letter, addresses if letter in "TR" else addresses[1:])
        if letter in "TRB" or end is not None:
            text += " ".join([letter, *(f"{each:x}" for each in kept), str(number)])
            text += f" {number // 2}\n" if letter == "B" else "\n"
    rows.write_text(text)
    counts = Preaggregated(rows).counts(program.image.layout)
    found, _ = fdata_from_counts(counts, program, AS_PERF2BOLT)
    _, expected = perf2bolt(tool, rows, PIE)
    assert len(expected) > 50
    assert sorted(lines_of(found)) == expected
