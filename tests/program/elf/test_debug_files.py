"""What was split off programs, by the tools that do so, is found and stands for what is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

import lbr2pgo
from lbr2pgo.program.elf.debug_files import stored
from lbr2pgo.program.elf.image import Image

Tool = Callable[[str], str]
Run = Callable[..., subprocess.CompletedProcess[str]]
NAME = "shapes.pie"  # whose static functions are called

LINKED_FROM = ("text", "init", "data", "fini", "gcc", "debug", "eh")


def written(machine: str, program: Path, target: Path) -> list[bytes]:
    """The sample profile and fdata of a program's recording."""
    llvm, fdata = target / "out.prof", target / "out.fdata"
    recording = TESTBINS / "recordings" / f"{machine}-{NAME}.perf.data"
    lbr2pgo.convert(recording, program, llvm=llvm, fdata=fdata)
    return [path.read_bytes() for path in (llvm, fdata)]


def split_by_objcopy(objcopy: str, whole: Path, stripped: Path, run: Run) -> Path:
    debug = stripped.with_name("shapes.debug")
    run(objcopy, "--only-keep-debug", whole, debug)
    run(objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", whole, stripped)
    return debug


@pytest.mark.parametrize(
    ("machine", "splitter"),
    [
        ("x86-64", "objcopy"), ("x86-64", "eu-strip"), ("x86-64", "llvm-objcopy-22"),
        ("aarch64", "aarch64-linux-gnu-objcopy"), ("aarch64", "llvm-objcopy-22"),
    ],
)  # fmt: skip
def test_a_stripped_program_with_its_debug_file_is_as_the_whole_one(
    machine: str, splitter: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    whole, stripped = TESTBINS / machine / NAME, tmp_path / NAME
    if splitter == "eu-strip":
        debug, plain = tmp_path / "shapes.debug", tmp_path / "plain"
        # What relocations refer to, it keeps.
        run(tool("objcopy"), *(f"-R.rela.{name}*" for name in LINKED_FROM), whole, plain)
        run(tool(splitter), "-f", debug, "-o", stripped, plain)
    else:
        debug = split_by_objcopy(tool(splitter), whole, stripped, run)
    assert Image.open(stripped).is_stripped
    assert written(machine, stripped, tmp_path) == written(machine, whole, tmp_path)
    found, expected = lbr2pgo.Program.open(stripped), lbr2pgo.Program.open(whole)
    assert [*found.regions.name] == [*expected.regions.name]
    debug.unlink()
    assert not lbr2pgo.Program.open(stripped).symbols.are_complete


@pytest.mark.parametrize("store", ["perf", "debuginfod"])
def test_symbols_are_found_in_stores_by_build_id(
    store: str, tmp_path: Path, tool: Tool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    whole, stripped = TESTBINS / "x86-64" / NAME, tmp_path / NAME
    debug = split_by_objcopy(tool("llvm-objcopy-22"), whole, stripped, run)
    build_id = Image.open(whole).build_id or ""
    of_perf, of_debuginfod = stored(build_id, ())
    place = of_perf if store == "perf" else of_debuginfod
    place.parent.mkdir(parents=True)
    shutil.move(debug, place)
    symbols = lbr2pgo.Program.open(stripped).symbols
    assert symbols.are_complete
    assert symbols.by_name("main") is not None


def test_a_symbol_table_without_content_is_none(tmp_path: Path, tool: Tool, run: Run) -> None:
    """`strip -g` leaves the table in the program, and tools leave its header in the debug file."""
    whole, stripped = TESTBINS / "x86-64" / NAME, tmp_path / NAME
    debug = split_by_objcopy(tool("objcopy"), whole, stripped, run)
    data = bytearray(debug.read_bytes())
    table, nobits = int.from_bytes(data[40:48], "little"), (8).to_bytes(4, "little")
    count = int.from_bytes(data[60:62], "little")
    for header in range(table, table + 64 * count, 64):
        if data[header + 4 : header + 8] == (2).to_bytes(4, "little"):
            data[header + 4 : header + 8] = nobits
    place = next(stored(Image.open(whole).build_id or "", (tmp_path,)))
    place.parent.mkdir(parents=True)
    place.write_bytes(data)
    debug.unlink()
    program = lbr2pgo.Program.open(stripped)
    assert program.symbols.origin == ".dynsym"
    assert not program.symbols.are_complete
    ours, expected = written("x86-64", stripped, tmp_path), written("x86-64", whole, tmp_path)
    assert ours[0] == expected[0], "functions are those of the debug information"
    recording = TESTBINS / "recordings" / f"x86-64-{NAME}.perf.data"
    tallies = lbr2pgo.convert(recording, stripped, llvm=tmp_path / "out.prof").tallies
    assert tallies["llvm_runs"] == tallies["runs_located"] == 2301
