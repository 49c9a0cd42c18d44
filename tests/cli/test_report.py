from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.cli import main

ARGUMENTS = ["report", str(RECORDING), "--binary", str(PIE)]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]):
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*ARGUMENTS, *words])
        out = capfd.readouterr()
        return code, out.out, out.err

    return call


def test_tables(command) -> None:
    code, out, err = command()
    assert (code, err) == (0, "")
    for title in ("Hot branches", "Mispredictions", "Cycles of blocks", "Branch outcomes",
                  "Indirect jumps and calls", "Hyperblocks", "Call stacks"):  # fmt: skip
        assert title in out


def test_only_and_top(command) -> None:
    _, out, _ = command("--only", "hot-branches", "--top", "3")
    assert "Hot branches (3 of 90)" in out
    assert "Mispredictions" not in out


def test_several_names_with_commas_or_blanks(command) -> None:
    for words in (["hot-branches,outcomes"], ["hot-branches", "outcomes"]):
        _, out, _ = command("--only", *words, "--format", "json")
        names = {table["name"] for table in json.loads(out)["tables"]}
        assert names == {"hot-branches", "outcomes", "outcomes-by-line", "outcomes-to-invert"}


def test_top_0_is_all(command) -> None:
    _, out, _ = command("--only", "hot-branches", "--top", "0", "--format", "json")
    assert len(json.loads(out)["tables"][0]["rows"]) == 90


def test_csv(command) -> None:
    code, out, _ = command("--only", "hot-branches", "--format", "csv")
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert code == 0
    assert rows[0] == ["# hot-branches"]
    assert len(rows) == 2 + 20 + 1


def test_a_function(command) -> None:
    code, out, _ = command("--function", "walk", "--only", "function")
    assert code == 0
    assert "Function walk" in out
    assert "callq" in out


def test_a_function_that_does_not_exist(command) -> None:
    code, out, err = command("--function", "wolk")
    assert (code, out) == (2, "")
    assert "wolk" in err
    assert "walk" in err
    assert "Traceback" not in err


def test_an_analysis_that_does_not_exist(command) -> None:
    code, _, err = command("--only", "warm-branches")
    assert code == 2
    assert "hot-branches" in err


@pytest.mark.parametrize("top", ["-1", "many"])
def test_a_bad_number_of_rows(command, top: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        command("--top", top)


def test_a_broken_profile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(RECORDING.read_bytes()[:50])
    assert main(["report", str(broken), "--binary", str(PIE)]) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_a_profile_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "/nowhere", "--binary", str(PIE)]) == 2
    assert "/nowhere" in capfd.readouterr().err
