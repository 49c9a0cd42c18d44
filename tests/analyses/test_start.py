"""The picture of a start."""

from __future__ import annotations

from pathlib import Path

from builders.evidence import dense, evidence
from builders.fixtures import Run, Tool
from builders.sources import Sample
from builders.starts import start as recorded_start

import lbr2pgo
from lbr2pgo.analyses.start import start, start_picture

MS = 1_000_000


CALL = Sample([(0x1041, 0x1005), (0x1000, 0x1040)], time=100)  # newest first
LOOP = [(0x1016, 0x1005), (0x1016, 0x1005)]


def test_functions_that_ran_early_alone_are_told(tmp_path: Path) -> None:
    found = dense(CALL, *(Sample(LOOP, time=100 + n * MS) for n in range(1, 9)))
    sections, pages, functions = start(found)
    (row,) = functions.records()
    assert (row["function"], row["address"], row["bytes"]) == ("g", 0x1040, 2)
    assert (row["first_ms"], row["last_ms"]) == (0, 0)
    (row,) = sections.records()
    assert (row["pages"], row["of"], row["together"]) == (1, 1, 1)
    (row,) = pages.records()
    assert (row["ms"], row["page"], row["function"]) == (0, 0x1000, "main")


def test_what_runs_in_another_process_too_is_not_early() -> None:
    late = [Sample(LOOP, pid=11, time=5), Sample(CALL.stack, pid=11, time=5 + 9 * MS)]
    found = dense(CALL, Sample(LOOP, time=100 + 8 * MS), *late)
    assert not start(found)[2].rows
    assert start(dense(CALL, Sample(LOOP, time=100 + 8 * MS)))[2].rows


def test_sparse_recordings_and_counts_tell_nothing() -> None:
    for found in (dense(CALL, period=10_007), dense(CALL, period=None), evidence(CALL)):
        first, *others = start(found)
        assert not first.rows
        assert "record --startup" in first.notes[0]
        assert not any(table.rows or table.notes for table in others)
        assert start_picture(found) is None


def test_a_report_shows_a_start(tmp_path: Path, tool: Tool, run: Run) -> None:
    recorded = recorded_start(tmp_path, tool, run)
    report = lbr2pgo.report(
        recorded.recording, recorded.program, no_libraries=True, only="start", top=None
    )
    sections, pages, functions = (report.table(f"start{x}") for x in ("", "-pages", "-functions"))
    assert sections is not None
    assert pages is not None
    assert functions is not None
    assert sum(map(int, sections.column("pages"))) == len(pages)
    text = next(row for row in sections.records() if row["section"] == ".text")
    # Functions of a page each take few bytes, but `far` is of three pages.
    assert 3 <= int(text["together"]) < int(text["pages"])
    lines = [str(line) for line in sections.column("over_time")]
    assert all(len(line) == 24 and line == "".join(sorted(line)) for line in lines)
    assert all(line.endswith("█") for line in lines)
    assert [*pages.column("ms")] == sorted(map(float, pages.column("ms")))
    assert {"main", "far", "later"} <= {*pages.column("function")}
    assert "once" in functions.column("function")
    assert not {"often", "later"} & {*functions.column("function")}


def test_the_picture_ends_with_all_pages(tmp_path: Path, tool: Tool, run: Run) -> None:
    recorded = recorded_start(tmp_path, tool, run)
    report = lbr2pgo.report(recorded.recording, recorded.program, only="start", functions=1)
    picture = report.start
    assert picture is not None
    table = report.table("start")
    assert table is not None
    totals = {" ".join((str(r["file"]), str(r["section"]))): r["pages"] for r in table.records()}
    for name, pages in picture.lines:
        assert [*pages] == sorted(pages)
        assert pages[-1] == totals[name]
        assert len(pages) == len(picture.ms)
