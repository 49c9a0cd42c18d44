from __future__ import annotations

from dataclasses import replace

import pytest
from builders.recordings import PIE, RECORDING, binary, recording

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.first_look import first_look
from lbr2pgo.analyses.table import Table
from lbr2pgo.reports.build import ReportOptions
from lbr2pgo.reports.gather import gather, look_for_analyses
from lbr2pgo.reports.placed_profiles import read_inputs


def made(options: ReportOptions) -> tuple[Evidence, list[Table]]:
    evidence = gather(read_inputs(options, asks=look_for_analyses())).evidence
    return evidence, [t for name in registry.ANALYSES for t in registry.run(name, evidence, 20)]


def test_what_a_simulated_processor_did_is_no_first_look_and_that_of_a_real_one_is() -> None:
    evidence, tables = made(ReportOptions((RECORDING,), PIE, libraries=False))
    assert evidence.limits.is_simulated
    simulated = first_look(evidence, tables)
    real = replace(evidence, limits=replace(evidence.limits, is_simulated=False))
    assert simulated[0] == first_look(real, tables)[0] == "hot-functions"
    assert "latency" in first_look(real, tables)
    assert "latency" not in simulated


@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_there_are_three_and_all_have_rows(name: str) -> None:
    evidence, tables = made(ReportOptions((recording(name),), binary(name), libraries=False))
    chosen = first_look(evidence, tables)
    rows = {table.name: len(table) for table in tables}
    assert len(set(chosen)) == 4
    assert all(rows[name] for name in chosen)
    assert first_look(evidence, []) == ("hot-functions",)


def test_a_table_of_no_mispredictions_is_no_first_look() -> None:
    evidence, tables = made(ReportOptions((RECORDING,), PIE, libraries=False))
    perfect = [
        replace(table, placed_rows=()) if table.name == "mispredictions-summary" else table
        for table in tables
    ]
    few = [t for t in perfect if t.name in ("hot-functions", "mispredictions", "hot-branches")]
    assert first_look(evidence, few) == ("hot-functions", "hot-branches")
    assert "mispredictions" in first_look(evidence, [*few, *tables])
