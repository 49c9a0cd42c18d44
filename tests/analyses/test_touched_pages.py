"""Pages that ran, beside those that exact counts of the same run name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from builders.evidence import program
from builders.fixtures import Run, Tool
from builders.starts import Start, start

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.touched_pages import (
    PAGE,
    CodeSections,
    code_sections,
    page_of,
    ran_pages,
    seen_ends,
    touched_pages,
)
from lbr2pgo.evidence.first_times import FIRST_TIMES, FirstTimes
from lbr2pgo.program.process import Part, Process
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.reports.gather import gather, look_for_analyses
from lbr2pgo.support.addresses import SLOT_SIZE, placed_addresses


@pytest.fixture
def recorded(tmp_path: Path, tool: Tool, run: Run) -> Start:
    return start(tmp_path, tool, run)


def evidence_of(recorded: Start) -> Evidence:
    inputs = Inputs((recorded.recording,), recorded.program)
    return gather(read_and_replay(inputs, asks=look_for_analyses(("start",)))).evidence


def pages_by_name(recorded: Start) -> dict[str, int]:
    opened = Program.open(recorded.program)
    names = "once", "never", "far", "often", "later", "main"
    return {name: int(opened.address_of(name) or 0) // PAGE for name in names}


def bytes_that_ran(recorded: Start) -> Iterator[int]:
    """By exact counts."""
    flow = read_and_replay(Inputs((recorded.exact,), recorded.program)).flow
    code = flow.instructions
    rows = np.flatnonzero(flow.executed > 0)
    for address, end in zip(code.address[rows].tolist(), code.end_of(rows).tolist(), strict=True):
        yield from range(address, end)


def test_pages_are_those_of_exact_counts_in_their_order(recorded: Start) -> None:
    evidence, named = evidence_of(recorded), pages_by_name(recorded)
    times = evidence.found(FIRST_TIMES)
    assert times is not None
    sections = code_sections(evidence.program)
    pages = touched_pages(evidence, seen_ends(times), sections)
    number = page_of(pages.address).tolist()
    assert ran_pages(evidence.flow).tolist() == number
    assert number == sorted({address // PAGE for address in bytes_that_ran(recorded)})
    since = dict(zip(number, pages.since.tolist(), strict=True))
    assert since[named["main"]] <= since[named["once"]] <= since[named["often"]]
    assert since[named["often"]] < since[named["far"]] < since[named["later"]]
    assert since[named["far"] + 1] == since[named["far"]]  # no branch is there
    assert named["never"] not in since
    assert {sections.names[row][1] for row in pages.section.tolist()} >= {".text", ".init"}


def test_times_are_of_each_process() -> None:
    times = FirstTimes(
        placed_addresses(np.array([1, 1, 2, 3], np.uint64)), np.array([0, 1, 1, 2]),
        np.zeros(4, np.int64),
        np.array([10, 2_000_010, 10, 7], np.uint64), np.array([0, 0, 1, 0], np.uint64),
        np.array([1_000_010, 4_000_010, 2_000_010, 7], np.uint64), 1,
    )  # fmt: skip
    seen = seen_ends(times)
    assert seen.address.tolist() == [1, 3, 2, 1]
    assert seen.since.tolist() == [0, 0, 0, 2]
    assert seen.until.tolist() == [1, 0, 2, 4]
    assert seen.part.tolist() == [1, 1, 0.5, 1]


def test_sections_of_several_files_and_what_is_in_none() -> None:
    toy = program()
    process = Process([Part(toy, 0, "app"), Part(toy, 3, "lib")])
    sections = code_sections(process)
    (code,) = (each for each in toy.image.sections if each.is_code)
    places = [0, code.address, code.end - 1, 3 * SLOT_SIZE, 3 * SLOT_SIZE + code.address]
    rows = sections.of(placed_addresses(np.array(places, np.uint64))).tolist()
    found = [sections.names[row] for row in rows]
    named = code.name
    assert found == [("app", ""), ("app", named), ("app", named), ("lib", ""), ("lib", named)]
    assert [sections.pages(row) for row in rows] == [0, 1, 1, 0, 1]


def test_a_section_has_all_pages_that_it_is_in() -> None:
    start, end = (placed_addresses(np.array([at], np.uint64)) for at in (0x1FFF, 0x3001))
    assert CodeSections(start, end, (("f", ".text"),)).pages(0) == 3
