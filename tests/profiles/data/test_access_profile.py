"""Data access profiles that llvm-profdata takes and clang parts data by."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.data.access_profile import DataAccessOutput, lines_of
from lbr2pgo.profiles.data.accessed_symbols import AccessedSymbols

from .conftest import NEEDED, OBJECTS


@pytest.fixture(scope="module")
def merged(
    program: Path, recording: Path, tool: Tool, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    directory = tmp_path_factory.mktemp("memprof")
    output = DataAccessOutput(directory / "app.yaml")
    convert(ConvertOptions((recording,), program, outputs=(output,)))
    command = [tool("llvm-profdata-22"), "merge", "--memprof-version=4", output.path]
    subprocess.run([*command, "-o", directory / "app.memprof"], check=True)
    return directory / "app.memprof"


def test_llvm_reads_what_was_counted(merged: Path, tool: Tool) -> None:
    said = subprocess.run(
        [tool("llvm-profdata-22"), "show", "--memory", merged], capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    counts = dict(re.findall(r"Symbol: +(\w+)\n +AccessCount: +(\d+)", said))
    told = {name: int(counts[name]) for name in NEEDED}
    assert told["zeroed0"] == 2 * 50 * 16  # a load and a store each
    assert told["set48"] == 50 * 16
    assert told["fixed16"] == 50 * 16 * 5 or told["fixed16"] == 50 * 16 * 4


def test_clang_parts_data_by_it(merged: Path, program: Path, tool: Tool, tmp_path: Path) -> None:
    command = [
        tool("clang-22"), "-O1", "-c", "-fdata-sections", f"-fmemory-profile-use={merged}",
        "-fpartition-static-data-sections", "-mllvm", "-memprof-annotate-static-data-prefix",
        program.parent / "program.c", "-o", tmp_path / "a.o",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    sections = subprocess.run(
        [tool("readelf"), "-SW", tmp_path / "a.o"], capture_output=True, text=True, check=True
    ).stdout
    for kind, section in (("zeroed", "bss"), ("set", "data"), ("fixed", "rodata")):
        for i in range(OBJECTS):
            prefix = "hot" if f"{kind}{i}" in NEEDED else "unlikely"
            assert f".{section}.{prefix}.{kind}{i} " in sections


def test_names_that_are_one_to_llvm_add_up(tool: Tool, tmp_path: Path) -> None:
    """Its reader gives up where one comes twice."""
    names = "table", "f.table", "f.table.1", "t.__uniq.12.llvm.3", "t.__uniq.12", "g.1", "g.2"
    counts = np.array([1, 2, 4, 8, 16, 0, 0], np.uint64)
    found = AccessedSymbols(names, counts, np.ones(7, np.uint64), {})
    (tmp_path / "app.yaml").write_text("\n".join(lines_of(found)) + "\n")
    command = [tool("llvm-profdata-22"), "merge", "--memprof-version=4", tmp_path / "app.yaml"]
    subprocess.run([*command, "-o", tmp_path / "app.memprof"], check=True)
    said = "\n".join(lines_of(found))
    assert re.findall(r"Symbol: '(.+)'\n +AccessCount: (\d+)", said) == [
        ("t.__uniq.12", "24"), ("f", "6"), ("table", "1"),
    ]  # fmt: skip
    assert re.findall(r"    - '(.+)'", said) == ["g"]


def test_names_are_text_and_cold_ones_may_lack() -> None:
    one = AccessedSymbols(("it's",), np.array([3], np.uint64), np.array([4], np.uint64), {})
    assert [*lines_of(one)] == [
        "---", "DataAccessProfiles:", "  SampledRecords:", "    - Symbol: 'it''s'",
        "      AccessCount: 3", "  KnownColdSymbols: [ ]", "  KnownColdStrHashes: [ ]", "...",
    ]  # fmt: skip
