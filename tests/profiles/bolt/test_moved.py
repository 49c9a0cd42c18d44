"""Profiles of programs that BOLT made, against perf2bolt with the same translation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from builders.bolt import (
    C_SOURCES,
    RandomTraces,
    build,
    counts_of,
    lines_of,
    lines_of_file,
    perf2bolt,
)
from builders.compat import AS_PERF2BOLT
from builders.fixtures import Corpus, Tool
from builders.outputs import held, outputs
from builders.recordings import TESTBINS

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.written import of_fdata
from lbr2pgo.profiles.bolt.moved import Moved
from lbr2pgo.program.address_translation import AddressTranslation, open_translation
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

HEADER = {"boltedcollection"}
LAYOUT = ("-enable-bat", "-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions")
BUILDS = {
    "clang": (C_SOURCES, "clang-22", "-O2", "-fPIE", "-pie", "-fuse-ld=lld", "-Wl,-q"),
    "gcc": (C_SOURCES, "gcc", "-O2", "-fno-pie", "-no-pie", "-Wl,-q"),
    "exceptions": (("throws.cpp",), "g++", "-O2", "-Wl,-q"),
    "assembly": (("odd.s",), "clang-22", "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,-q"),
}


def bolted(tool: Tool, program: Path, profile: Path, *options: str) -> Path:
    """The program as llvm-bolt lays it out by a profile."""
    made = profile.with_name(f"{program.name}.bolted")
    command = [tool("llvm-bolt-22"), program, "-data", profile, "-o", made, *LAYOUT, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def bolted_by_random_traces(tool: Tool, program: Path, where: Path, *options: str) -> Path:
    profile, opened = where / "first.fdata", Program.open(program)
    counts = counts_of(RandomTraces(opened, seed=7).draw(800))
    fdata_text.write(fdata_from_counts(counts, opened)[0], profile)
    return bolted(tool, program, profile, *options)


@pytest.mark.parametrize("name", BUILDS)
def test_random_traces(name: str, tool: Tool, tmp_path: Path) -> None:
    sources, compiler, *flags = BUILDS[name]
    plain = build(tmp_path / name, sources, tool(compiler), *flags)
    binary = bolted_by_random_traces(tool, plain, tmp_path, "-icf=all")
    program = Program.open(binary)
    translation = open_translation(program.image)
    assert translation is not None
    assert len(translation.address) > 5
    counts = counts_of(RandomTraces(program, seed=1).draw(2000))
    expected = perf2bolt(tool("perf2bolt-22"), binary, counts, tmp_path)
    found, tallies = fdata_from_counts(counts, program, AS_PERF2BOLT)
    assert found.bolted
    assert lines_of(found) == expected - HEADER
    given = sum(n for key, n in tallies.items() if key.startswith("fdata_branches"))
    assert given == counts.branch_total()


def without_origin(yaml: Path) -> list[str]:
    """All but the line that names the reader, and mispredictions.

    perf2bolt reads those of functions that BOLT left alone from recordings, and not from traces.
    """
    lines = [line for line in yaml.read_text().splitlines() if "profile-origin:" not in line]
    return [re.sub(r", mis: \d+", "", line) for line in lines]


@pytest.mark.parametrize("name", ["interp.pie", "shapes.static"])
@pytest.mark.parametrize("depth", [16, 32])
def test_a_recording_gives_perf2bolts_file(
    name: str, depth: int, tool: Tool, tmp_path: Path
) -> None:
    tool("perf")
    first, plain = tmp_path / "first.fdata", TESTBINS / "x86-64" / name
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    convert(ConvertOptions((recording,), plain, outputs=outputs(fdata=first)))
    binary, again = bolted(tool, plain, first), tmp_path / "perf.data"
    options = RecordOptions(output=again, command=(str(binary), "20"), period=997, depth=depth)
    record_software(options)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    command = [tool("perf2bolt-22"), binary, "-p", again, "-o", theirs]
    subprocess.run(command, capture_output=True, check=True)
    # It leaves out entries of stacks of 32.
    convert(ConvertOptions((again,), binary, outputs=outputs(fdata=ours), compat=AS_PERF2BOLT))
    assert ours.read_bytes() == theirs.read_bytes()
    written = held(ours)
    assert isinstance(written, fdata_text.Fdata)
    assert of_fdata(written, Program.open(plain)).functions == 0
    assert len(lines_of_file(theirs)) > 100
    if depth == 16:
        subprocess.run([*command, "-profile-format=yaml"], capture_output=True, check=True)
        convert(ConvertOptions((again,), binary, outputs=outputs(bolt_yaml=ours)))
        assert without_origin(ours) == without_origin(theirs)
        assert "profile-flags:   [ lbr ]" in theirs.read_text()


def test_without_a_translation_nothing_is_moved() -> None:
    program = Program.open(TESTBINS / "x86-64" / "interp.pie")
    functions = discover(program.image, program.symbols)
    moved = Moved(functions, AddressTranslation.empty())
    assert not moved.holds(functions.parent).any()


@pytest.mark.slow
def test_sqlite_gives_perf2bolts_file(corpus: Corpus, tool: Tool, tmp_path: Path) -> None:
    plain, first = corpus("sqlite/sq.zst"), tmp_path / "first.fdata"
    first.write_bytes(corpus("sqlite/sq.perf2bolt-22.fdata.zst").read_bytes())
    binary, again = bolted(tool, plain, first), tmp_path / "perf.data"
    record_software(RecordOptions(output=again, command=(str(binary), "1000"), period=997))
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    command = [tool("perf2bolt-22"), binary, "-p", again, "-o", theirs]
    subprocess.run(command, capture_output=True, check=True)
    convert(ConvertOptions((again,), binary, outputs=outputs(fdata=ours), compat=AS_PERF2BOLT))
    assert ours.read_bytes() == theirs.read_bytes()
    assert len(lines_of_file(theirs)) > 1000
