from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.fixtures import Run, Tool
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING, TESTBINS

import lbr2pgo
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.density import verdict
from lbr2pgo.profiles.llvm.sample_quality import density as tree_density

PROGRAMS = {
    "interp.pie": (RECORDING, PIE),
    "interp.static": (STATIC_RECORDING, STATIC),
    "shapes.pie": (
        TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data", TESTBINS / "x86-64" / "shapes.pie",
    ),
}  # fmt: skip


def note_of(recording: Path, binary: Path, out: Path) -> str:
    output = lbr2pgo.output("llvm", path=out)
    done = lbr2pgo.convert(recording, binary, outputs=[output])
    (note,) = (note for note in done.notes if "samples for each location" in note)
    return note


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_density_and_the_advice_are_llvm_profgens(
    name: str, tmp_path: Path, tool: Tool,
    run: Run,
) -> None:  # fmt: skip
    recording, binary = PROGRAMS[name]
    theirs = run(
        tool("llvm-profgen-22"), f"--perfdata={recording}", f"--binary={binary}",
        f"--output={tmp_path / 'theirs'}", "--show-density",
    )  # fmt: skip
    said = theirs.stdout + theirs.stderr
    (expected,) = re.findall(r"density >= ([0-9.]+)", said)
    note = note_of(recording, binary, tmp_path / "ours")
    assert f" {expected} samples for each location" in note
    for times in re.findall(r"with ([0-9.]+)x more samples", said):
        assert f"{times} times more" in note


def test_a_table_is_as_dense_as_the_tree_that_it_makes(tmp_path: Path) -> None:
    note = note_of(STATIC_RECORDING, STATIC, tmp_path / "profile")
    tree = text.parse((tmp_path / "profile").read_bytes().splitlines(), "profile")
    assert f" {tree_density(tree):.1f} samples" in note


@pytest.mark.parametrize(
    ("density", "says"), [(50.0, "enough"), (25.0, "2.0 times more"), (0.0, "record longer")]
)
def test_the_verdict_says_what_to_do(density: float, says: str) -> None:
    assert says in verdict(density)
