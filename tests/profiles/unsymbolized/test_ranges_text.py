"""Unsymbolized ranges and branches, as llvm-profgen writes them of the same samples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.compat import llvm_profgen_if
from builders.fixtures import Corpus, Tool
from builders.llvm_profiles import CASES, DIFFERENT, binary_of
from builders.recordings import TESTBINS

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.profiles.unsymbolized.format import UnsymbolizedOutput


def written(recording: Path, binary: Path, path: Path, *, compat: bool) -> Conversion:
    """A conversion whose waterfall adds up."""
    options = ConvertOptions(
        (recording,),
        binary,
        outputs=(UnsymbolizedOutput(path),),
        compat=llvm_profgen_if(compat),
    )
    done = convert(options)
    waterfall.check(done.tallies, steps())
    return done


@pytest.mark.parametrize("name", CASES)
def test_the_cases_of_llvm(name: str, corpus: Corpus, tmp_path: Path) -> None:
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    binary = binary_of(corpus, name)
    expected = corpus(f"llvm-profgen/{name}.expected.raw").read_text()
    raw = tmp_path / "raw"
    written(recording, binary, raw, compat=True)
    assert raw.read_text() == expected
    written(recording, binary, raw, compat=False)
    assert (raw.read_text() == expected) == (name not in DIFFERENT)


def profgen(tool: Tool, out: Path, *words: object) -> str:
    """What llvm-profgen writes."""
    done = subprocess.run(
        [tool("llvm-profgen-22"), *map(str, words), f"--output={out}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert out.exists(), done.stderr
    return out.read_text()


@pytest.mark.parametrize("name", ["interp.pie", "interp.static", "shapes.pie", "shapes.static"])
def test_recordings_as_llvm_profgen_reads_them(name: str, tool: Tool, tmp_path: Path) -> None:
    """Among them are branches into linkage tables and from other images."""
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    binary = TESTBINS / "x86-64" / name
    raw = tmp_path / "raw"
    written(recording, binary, raw, compat=True)
    theirs = profgen(
        tool, tmp_path / "theirs", f"--perfdata={recording}", f"--binary={binary}",
        "--skip-symbolization",
    )  # fmt: skip
    assert raw.read_text() == theirs


@pytest.mark.parametrize("name", ["interp.pie", "shapes.static"])
def test_llvm_profgen_makes_the_same_profile_of_it(name: str, tool: Tool, tmp_path: Path) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    binary = TESTBINS / "x86-64" / name
    raw = tmp_path / "raw"
    written(recording, binary, raw, compat=False)
    common = (f"--binary={binary}", "--format=text", "--use-dwarf-correlation")
    ours = profgen(tool, tmp_path / "ours", f"--unsymbolized-profile={raw}", *common)
    assert ours == profgen(tool, tmp_path / "theirs", f"--perfdata={recording}", *common)


@pytest.mark.parametrize("name", ["interp.pie", "shapes.static"])
def test_it_is_converted_as_the_recording(name: str, tmp_path: Path) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    binary = TESTBINS / "x86-64" / name
    raw = tmp_path / "raw"
    written(recording, binary, raw, compat=False)
    profiles = [tmp_path / "of-raw", tmp_path / "of-recording"]
    for source, path in zip((raw, recording), profiles, strict=True):
        convert(ConvertOptions((source,), binary, outputs=(output("llvm", path),)))
    assert profiles[0].read_text() == profiles[1].read_text()


def test_branches_to_elsewhere_are_left_out_and_counted(tmp_path: Path) -> None:
    recording = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
    done = written(recording, TESTBINS / "x86-64" / "shapes.pie", tmp_path / "raw", compat=False)
    lost = waterfall.losses_of(done.tallies, "unsymbolized_branches")
    assert lost["to_elsewhere"] > 0
    _, ranges, branches = sections(tmp_path / "raw")
    assert sum(ranges) == done.tallies["unsymbolized_runs"]
    assert sum(branches) == done.tallies["unsymbolized_branches"]


def sections(path: Path) -> tuple[int, list[int], list[int]]:
    """How many ranges, and the counts of both sections."""
    lines = path.read_text().splitlines()
    number = int(lines[0])
    counts = [[int(line.rpartition(":")[2]) for line in part]
              for part in (lines[1 : 1 + number], lines[2 + number :])]  # fmt: skip
    return number, *counts


def test_nothing_is_left_of_what_no_code_ran(tmp_path: Path) -> None:
    traces, raw = tmp_path / "traces", tmp_path / "raw"
    traces.write_text("F 22a8c1 22a8c2 4\n")
    with pytest.raises(EmptyProfileError, match="valid fall-throughs"):
        written(traces, TESTBINS / "x86-64" / "interp.static", raw, compat=False)
    assert not raw.exists()
