"""What benchmarks/front_end.py keeps of builds that it ranks, and prints again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.pgo.timing import Rounds

INTERP = Path(__file__).parents[1] / "testbins" / "src" / "interp.c"


@pytest.fixture
def front_end(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import front_end

    return front_end


@pytest.mark.slow
def test_builds_of_other_levels_are_measured_once_and_printed_without_measuring(
    front_end: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tool: Callable[[str], str],
) -> None:  # fmt: skip
    from fresh_programs import Program

    tool("clang-22"), tool("ld.lld-22"), tool("qemu-x86_64")
    folder = tmp_path / "picosat"  # as one of the programs that it knows
    (tmp_path / "sources").mkdir()
    folder.mkdir()
    shutil.copy(INTERP, tmp_path / "sources")
    monkeypatch.chdir(folder)
    program = Program("picosat", ["interp.c"], ["1"], ["30"])
    monkeypatch.setattr(front_end, "RANKED", ("plain", "plain@Os", "plain@O2"))
    assert front_end.measured_rows(program, "zen4", None) == []
    (row,) = front_end.measured_rows(program, "zen4", Rounds(6))  # the third is the first
    assert (row.program, row.build) == ("picosat", "plain@Os")
    assert row.costs["code"] < 1
    for runs in (Rounds(6), None):
        assert front_end.measured_rows(program, "zen4", runs) == [row]
    monkeypatch.setattr(front_end, "RANKED", ("plain", "plain@Os", "plain@O3"))
    both = front_end.measured_rows(program, "zen4", Rounds(6))
    assert [each.build for each in both] == ["plain@Os", "plain@O3"]
    words = ["--kept", str(tmp_path), "--program", "picosat", "edlib"]
    monkeypatch.setattr(sys, "argv", ["front_end.py", *words])
    capsys.readouterr()
    front_end.main()
    told = capsys.readouterr().out
    assert [line.split(" | ")[1] for line in told.splitlines()[2:4]] == ["plain@Os", "plain@O3"]
    assert "n = 2 | all | picosat |" in told
