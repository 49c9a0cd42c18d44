from __future__ import annotations

from dataclasses import replace

import pytest
from builders.evidence import gather
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.table import Column, Table, Unit

SIMULATED = "those of a simulated processor"


def test_rows_are_as_wide_as_there_are_columns() -> None:
    with pytest.raises(ValueError, match="rows of"):
        Table("t", "T", (Column("a", "a", Unit.COUNT),), ((1, 2),))


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_tables_of_an_emulated_run_say_what_was_simulated(name: str) -> None:
    found = gather((RECORDING,), PIE).evidence
    assert found.limits.is_simulated
    for table in registry.run(name, found, None):
        shown = [column for column in table.columns if column.of_processor]
        if not shown:
            assert not any(SIMULATED in note for note in table.notes)
            continue
        assert any(SIMULATED in note for note in table.notes)
        heads = [column.title for column in shown]
        assert table.title.endswith("(simulated)") or all("(simulated)" in head for head in heads)


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_tables_of_hardware_say_nothing_of_simulation(name: str) -> None:
    found = gather((RECORDING,), PIE).evidence
    real = replace(found, limits=replace(found.limits, is_simulated=False))
    for table in registry.run(name, real, None):
        words = (table.title, *table.notes, *(column.title for column in table.columns))
        assert not any("simulated" in word for word in words)
