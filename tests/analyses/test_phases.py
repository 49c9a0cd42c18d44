"""Phases of real recordings, whose program says what they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.evidence import evidence
from builders.fixtures import Tool
from builders.phases import KINDS, phased
from builders.sources import Sample

import lbr2pgo
from lbr2pgo.analyses.phases import phases
from lbr2pgo.analyses.table import Table


def table_of(tmp_path: Path, tool: Tool, *rounds: int) -> Table:
    recorded = phased(tmp_path, tool, *rounds)
    table = lbr2pgo.report(recorded.recording, only="phases").table("phases")
    assert table is not None
    return table


@pytest.mark.parametrize("rounds", [(300, 900), (900, 300), (200, 400, 600)])
def test_planted_phases_are_found_with_their_functions(
    rounds: tuple[int, ...], tmp_path: Path, tool: Tool
) -> None:
    rows = [*table_of(tmp_path, tool, *rounds).records()]
    assert [row["phase"] for row in rows] == [*range(1, len(rounds) + 1)]
    for number, (row, planted) in enumerate(zip(rows, rounds, strict=True)):
        names = re.findall(r"(\S+) \d+ %", str(row["functions"]))
        assert set(names) == KINDS[number % 2]
        assert abs(float(row["share"] or 0) - planted / sum(rounds)) < 0.05
    times = [str(row["time"]).split(",") for row in rows]
    ends = [end for time in times for end in time]
    assert sorted(ends) == ends
    assert sum(len(str(row["over_time"])) for row in rows) <= 48 + len(rows)
    assert max("".join(str(row["over_time"]) for row in rows)) == "█"


@pytest.mark.parametrize("rounds", [(800,), (0, 800)])
def test_a_program_that_does_one_thing_has_one_phase(
    rounds: tuple[int, ...], tmp_path: Path, tool: Tool
) -> None:
    table = table_of(tmp_path, tool, *rounds)
    assert table.column("phase") == (1,)
    assert table.column("share") == (1.0,)


def test_samples_without_times_have_no_phases() -> None:
    table = phases(evidence(Sample([(0x1016, 0x1005)])))
    assert not table.rows
    assert table.notes == ("The recording does not say when its samples were taken.",)
