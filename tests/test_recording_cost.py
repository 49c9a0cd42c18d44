"""Costs of the software LBR, of a real program."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Tool

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_each_way_of_running_a_program_is_told_beside_its_own_time(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("qemu-x86_64")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import recording_cost

    command = [str(TESTBINS / "x86-64" / "interp.static"), "40"]
    found = recording_cost.seconds(command, 1009, 1)
    native, emulated, recorded, bare, exact = found.values()
    assert native < emulated < min(recorded, bare, exact)
    made = {"native": 0.5, "QEMU alone": 4.0, "recorded": 12.25}
    assert recording_cost.row(made) == ["0.50 s", "8.0", "24.5"]
