"""The simulated instruction cache against cachegrind's, of the same geometry."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Tool

from lbr2pgo.recorders.front_end import PRESETS, Structure
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

LINE = 64
BEGINS = 700
"""Misses while a program starts: loader and C library choose other functions under Valgrind."""


@pytest.mark.parametrize(
    ("name", "size", "ways"),
    [("shapes.pie", 1024, 2), ("shapes.static", 4096, 4), ("interp.pie", 8192, 8)],
)
def test_misses_as_cachegrind_counts_them(
    name: str, size: int, ways: int, tool: Tool, tmp_path: Path
) -> None:
    program = str(TESTBINS / "x86-64" / name)
    command = [
        tool("valgrind"), "--tool=cachegrind", "--cache-sim=yes", f"--I1={size},{ways},{LINE}",
        "--cachegrind-out-file=/dev/null", program, "2",
    ]  # fmt: skip
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    first, last = (
        int(re.search(rf"{cache}\s+misses:\s+([\d,]+)", said)[1].replace(",", ""))  # type: ignore[index]
        for cache in ("I1", "LLi")
    )
    options = RecordOptions(
        output=tmp_path / "perf.data", command=(program, "2"), emulate=True,
        front_end=replace(PRESETS["skylake"], l1i=Structure(size // LINE, ways, 0)),
    )  # fmt: skip
    found = record_software(options).front_end
    assert found is not None
    # An instruction over two lines is one miss of cachegrind's, even if both lines are missing.
    assert abs(found.l1i - first) <= 0.02 * first + BEGINS
    # Cachegrind's last level holds data, too, and lines are never fetched again in either.
    assert abs(found.l2 - last) <= 150
