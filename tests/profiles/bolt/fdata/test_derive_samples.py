"""fdata of samples without branches, against perf2bolt on the same recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.model.waterfall import check
from lbr2pgo.profiles.registry import output, steps


def converted(recording: Path, binary: Path, out: Path, *, no_lbr: bool = True) -> Conversion:
    asked = (output("fdata", out, samples=True),)
    return convert(ConvertOptions((recording,), binary, outputs=asked, no_lbr=no_lbr, force=True))


@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_samples_are_those_of_perf2bolt(
    name: str, tmp_path: Path, tool: Callable[[str], str], run
) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    binary, ours, theirs = TESTBINS / "x86-64" / name, tmp_path / "ours", tmp_path / "theirs"
    done = converted(recording, binary, ours)
    check(done.tallies, steps())
    assert done.tallies["fdata_samples"] == done.tallies["instructions_in_image"]
    run(tool("perf2bolt-22"), binary, "-p", recording, "-basic-events", "-o", theirs)
    assert sorted(ours.read_text().splitlines()) == sorted(theirs.read_text().splitlines())
    assert ours.read_text().startswith("no_lbr taken-branches:u:\n")


def test_llvm_bolt_takes_them(tmp_path: Path, tool: Callable[[str], str], run) -> None:
    out = tmp_path / "app.fdata"
    converted(RECORDING, PIE, out)
    done = run(tool("llvm-bolt-22"), PIE, "-data", out, "-o", "/dev/null")
    assert "non-empty execution profile" in done.stdout + done.stderr


def test_recorded_branches_are_no_samples(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="recorded branches tell more") as told:
        converted(RECORDING, PIE, tmp_path / "app.fdata", no_lbr=False)
    assert "--no-lbr" in (told.value.cure or "")
    assert not (tmp_path / "app.fdata").exists()
