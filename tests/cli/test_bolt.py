"""`lbr2pgo bolt` as a build would run it."""

from __future__ import annotations

import filecmp
import subprocess

import pytest
from builders.recordings import PIE, RECORDING, TESTBINS

OTHER = TESTBINS / "x86-64" / "shapes.pie"


@pytest.fixture
def fdata(command, tmp_path):
    path = tmp_path / "app.fdata"
    assert command("convert", RECORDING, "--binary", PIE, "--fdata", path).code == 0
    return path


def test_a_profile_that_fits_gives_an_optimised_program(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    answer = command("bolt", PIE, "-o", tmp_path / "out", "--fdata", fdata)
    assert answer.code == 0
    assert answer.out == f"lbr2pgo: {fdata}: fits {PIE}\n"
    assert answer.err.startswith(f"wrote {tmp_path / 'out'} (")
    assert not filecmp.cmp(PIE, tmp_path / "out", shallow=False)
    run = [
        subprocess.run([elf, "5"], capture_output=True, check=True).stdout
        for elf in (PIE, tmp_path / "out")
    ]
    assert run[0] == run[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["app.fdata", "out"]


@pytest.mark.parametrize("words", [(), ("--fdata", "none-yet.fdata")])
def test_without_a_profile_the_output_is_a_copy_and_one_line_says_so(command, words, tmp_path):
    answer = command("bolt", PIE, "-o", tmp_path / "out", *words)
    assert answer.code == 0
    assert answer.err.count("\n") == 1
    assert "no profile" in answer.err
    assert filecmp.cmp(PIE, tmp_path / "out", shallow=False)
    assert (tmp_path / "out").stat().st_mode & 0o111


def test_without_llvm_bolt_the_output_is_a_copy_too(command, fdata, monkeypatch, tmp_path):
    monkeypatch.setenv("LLVM_BOLT", "no-such-bolt")
    answer = command("bolt", PIE, "-o", tmp_path / "out", "--fdata", fdata)
    assert answer.code == 0
    assert "llvm-bolt is not installed" in answer.err
    assert filecmp.cmp(PIE, tmp_path / "out", shallow=False)


def test_another_program_s_profile_is_refused(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    answer = command("bolt", OTHER, "-o", tmp_path / "out", "--fdata", fdata)
    assert answer.code == 1
    assert "functions that it lacks (run/1" in answer.out
    assert answer.out.endswith("; refused: stale, missing\n")
    assert not (tmp_path / "out").exists()


def test_a_stale_profile_is_used_and_how_stale_is_said(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    old = TESTBINS / "x86-64" / "interp.static"  # the same functions, other code
    words = ("bolt", old, "-o", tmp_path / "out", "--fdata", fdata)
    refused = command(*words)
    assert refused.code == 1
    assert "53.06% stale" in refused.out
    assert refused.out.endswith("; refused: stale\n")
    assert not (tmp_path / "out").exists()
    answer = command(*words, "--max-stale", "0.6")
    assert answer.code == 0
    assert answer.out.startswith("lbr2pgo: warning: ")
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("--fdata", "stale"), ("--fdata", "none-yet"), ()])
def test_yaml_serves_where_fdata_does_not(command, words, tool, tmp_path):
    tool("llvm-bolt-22")
    newer = TESTBINS / "x86-64" / "interp.static"
    stale, yaml = tmp_path / "stale", tmp_path / "app.yaml"
    made = command("convert", RECORDING, "--binary", PIE, "--fdata", stale, "--bolt-yaml", yaml)
    assert made.code == 0
    words = [tmp_path / word if word in ("stale", "none-yet") else word for word in words]
    answer = command("bolt", newer, "-o", tmp_path / "out", *words, "--yaml", yaml)
    assert answer.code == 0
    assert ("refused: stale" in answer.out) == (stale in words)
    (used,) = (line for line in answer.out.splitlines() if "functions in the binary" in line)
    assert used.startswith(f"lbr2pgo: {yaml}: ")
    assert "0 out of" not in used
    assert not filecmp.cmp(newer, tmp_path / "out", shallow=False)
    run = [
        subprocess.run([elf, "5"], capture_output=True, check=True).stdout
        for elf in (newer, tmp_path / "out")
    ]
    assert run[0] == run[1]


def test_yaml_is_not_used_where_fdata_fits(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    (tmp_path / "app.yaml").write_text("broken")
    words = ("--fdata", fdata, "--yaml", tmp_path / "app.yaml")
    answer = command("bolt", PIE, "-o", tmp_path / "out", *words)
    assert answer.code == 0
    assert answer.out == f"lbr2pgo: {fdata}: fits {PIE}\n"


def test_a_little_staleness_is_no_warning(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    lines = fdata.read_text().splitlines(keepends=True)
    total = sum(int(line.split()[-1]) for line in lines)
    row = next(i for i, line in enumerate(lines) if 0 < int(line.split()[-1]) < total / 10)
    words = lines[row].split()
    lines[row] = " ".join([*words[:2], "ffff", *words[3:]]) + "\n"
    fdata.write_text("".join(lines))
    answer = command("bolt", PIE, "-o", tmp_path / "out", "--fdata", fdata)
    assert answer.code == 0
    assert "% stale" in answer.out
    assert "warning" not in answer.out


def test_what_llvm_bolt_says_against_it_is_passed_on(command, fdata, tool, tmp_path):
    tool("llvm-bolt-22")
    answer = command("bolt", PIE, "-o", tmp_path / "out", "--fdata", fdata, "--option=-no-such")
    assert answer.code == 2
    assert "Unknown command line argument '-no-such'" in answer.err
    assert [p.name for p in tmp_path.iterdir()] == ["app.fdata"]


def test_the_output_may_not_be_the_input(command, fdata):
    answer = command("bolt", PIE, "-o", fdata, "--fdata", fdata)
    assert answer.code == 2
