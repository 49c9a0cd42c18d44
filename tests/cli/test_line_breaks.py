"""A name with a line break, which neither text form can hold, costs its function only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.profiles.llvm import extbinary
from lbr2pgo.profiles.llvm import text as llvm_text

PROGRAM = TESTBINS / "x86-64" / "shapes.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
NAME = "_ZN12_GLOBAL__N_113checked_digitEj"
BROKEN = NAME.replace("checked_", "checked\n")
LOST = "in functions with a line break in their names"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The program, one of whose functions has such a name in its symbols and its DWARF."""
    program = tmp_path / "program"
    program.write_bytes(PROGRAM.read_bytes().replace(NAME.encode(), BROKEN.encode()))
    return program


def test_the_function_is_left_out_of_both_files_and_counted(
    command, broken: Path, tmp_path: Path
) -> None:
    found = {}
    for name, program in (("whole", PROGRAM), ("cut", broken)):
        folder = tmp_path / name
        folder.mkdir()
        outputs = ["--llvm", folder / "llvm", "--fdata", folder / "fdata"]
        assert command("convert", RECORDING, "--binary", program, *outputs,
                       "--summary-json", folder / "json").code == 0  # fmt: skip
        found[name] = folder
    lines = (found["whole"] / "fdata").read_text().splitlines()
    kept = [line for line in lines if NAME not in line]
    assert (found["cut"] / "fdata").read_text().splitlines() == kept != lines
    expected = llvm_text.read(found["whole"] / "llvm")
    assert expected.functions.pop(NAME).total
    for function in expected.functions.values():
        for place, targets in list(function.call_targets.items()):
            targets.pop(NAME, None)
            if not targets:
                del function.call_targets[place]
    assert llvm_text.read(found["cut"] / "llvm") == expected
    for key in ("llvm_runs", "fdata_runs", "fdata_branches"):
        whole, cut = (_step(folder / "json", key) for folder in found.values())
        lost = [each["count"] for each in cut["losses"] if each["reason"] == LOST]
        assert [whole["count"] - cut["count"]] == lost
        assert lost[0] > 20


def test_what_was_lost_before_is_not_lost_again(
    command, broken: Path, tmp_path: Path, run, tool
) -> None:
    """The function's symbol is gone, so its fall-throughs have no function."""
    rows = []
    for program, name in ((PROGRAM, NAME), (broken, BROKEN)):
        bare, summary = tmp_path / f"bare{len(rows)}", tmp_path / "json"
        run(tool("objcopy"), f"--strip-symbol={name}", program, bare)
        words = ("--llvm", tmp_path / "llvm", "--summary-json", summary)
        assert command("convert", RECORDING, "--binary", bare, *words).code == 0
        rows.append(_step(summary, "llvm_runs"))
    assert rows[0] == rows[1]


@pytest.mark.parametrize("contexts", ["nested", "full"])
def test_contexts_with_the_function_are_left_out_and_counted(
    command, broken: Path, tmp_path: Path, tool, contexts: str
) -> None:
    tool("qemu-x86_64")
    recording, profile, summary = (tmp_path / name for name in ("data", "profile", "json"))
    words = ("--emulate", "--call-graph", "-c", 997, "-o", recording, "--", PROGRAM)
    assert command("record", *words).code == 0
    words = ("--contexts", contexts, "--summary-json", summary)
    for program in (PROGRAM, broken):
        assert (
            command("convert", recording, "--binary", program, "--llvm", profile, *words).code == 0
        )
        assert (NAME in profile.read_text()) == (program == PROGRAM)
        assert "checked" not in profile.read_text() or program == PROGRAM
    assert llvm_text.read(profile).functions
    step = _step(summary, "llvm_context_runs")
    assert [each["reason"] for each in step["losses"]] == [LOST]
    assert step["losses"][0]["count"] > 20
    assert step["count"] + step["losses"][0]["count"] == step["before"]


def _step(path: Path, key: str) -> dict:
    rows = json.loads(path.read_text())["waterfall"]
    return next(row for row in rows if row["step"] == key)


def test_the_binary_form_holds_it(command, broken: Path, tmp_path: Path, run, tool) -> None:
    for name, program in (("whole", PROGRAM), ("broken", broken)):
        words = ["--binary", program, "--llvm-format", "extbinary", "--llvm", tmp_path / name]
        assert command("convert", RECORDING, *words).code == 0
    assert extbinary.read(tmp_path / "broken").functions[BROKEN].total
    shown = [
        run(tool("llvm-profdata-22"), "show", "--sample", tmp_path / name).stdout
        for name in ("whole", "broken")
    ]
    assert sorted(shown[0].replace(NAME, BROKEN)) == sorted(shown[1])
