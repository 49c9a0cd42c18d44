"""Messages that docs/faq.md explains, provoked in the tools that print them and in ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import ROOT, TESTBINS, Run, Tool

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import from_lists
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.perf_data_writer import PerfDataWriter, RecordedEvent

RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
# As one line: a message may be wrapped in the page.
PAGE = " ".join((ROOT / "docs" / "faq.md").read_text().split())

Ask = Callable[..., str]


@pytest.fixture
def ask(tmp_path: Path, tool: Tool, run: Run) -> Ask:
    """`ask("llvm-profgen", recording, binary)`: all that the tool prints of a conversion."""
    out = tmp_path / "out"
    commands = {
        "llvm-profgen": lambda recording, binary: (
            tool("llvm-profgen-22"), f"--binary={binary}", f"--perfdata={recording}",
            f"--output={out}",
        ),
        "perf2bolt": lambda recording, binary: (
            tool("perf2bolt-22"), binary, "-p", recording, "-o", out,
        ),
        "lbr2pgo": lambda recording, binary: (
            sys.executable, "-m", "lbr2pgo", "convert", recording, "--binary", binary,
            "--llvm", out,
        ),
    }  # fmt: skip

    def printed(name: str, recording: Path, binary: Path) -> str:
        tool("perf")
        done = run(*commands[name](recording, binary), cwd=tmp_path, check=False)
        return done.stdout + done.stderr

    return printed


def explained(message: str, printed: str) -> bool:
    return message in PAGE and message in " ".join(printed.split())


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    return Path(shutil.copy(TESTBINS / "x86-64" / "interp.pie", tmp_path / "renamed"))


def test_a_renamed_binary(ask: Ask, renamed: Path) -> None:
    message = "No relevant mmap event is found in perf data."
    assert explained(message, ask("llvm-profgen", RECORDING, renamed))
    assert "error" not in ask("lbr2pgo", RECORDING, renamed)


def test_another_binary(ask: Ask) -> None:
    other = TESTBINS / "x86-64" / "shapes.pie"
    message = "failed to match build-id from perf output"
    assert explained(message, ask("perf2bolt", RECORDING, other))
    assert explained("no process in this recording mapped", ask("lbr2pgo", RECORDING, other))


def test_a_rebuilt_binary(ask: Ask, tmp_path: Path, tool: Tool) -> None:
    rebuilt = tmp_path / "interp.pie"
    link = ("-fuse-ld=lld", "-Wl,--build-id=none,--emit-relocs,--gc-sections")
    source = TESTBINS / "src" / "interp.c"
    subprocess.run(
        [tool("clang-22"), "-O1", "-g", "-fPIE", "-pie", *link, source, "-o", rebuilt], check=True
    )
    message = (
        "This high mismatch ratio indicates the input binary is probably not the same binary "
        "used during profiling collection."
    )
    assert explained(message, ask("perf2bolt", RECORDING, rebuilt))
    assert explained("that start or end inside an instruction", ask("lbr2pgo", RECORDING, rebuilt))


def test_no_debug_information(ask: Ask, renamed: Path, tool: Tool) -> None:
    stripped = renamed.with_name("interp.pie")
    subprocess.run([tool("strip"), "-g", renamed, "-o", stripped], check=True)
    message = (
        "The output profile is empty or the --profile-density-cutoff-hot option is set too low."
    )
    assert explained(message, ask("llvm-profgen", RECORDING, stripped))
    assert explained("has no debug information", ask("lbr2pgo", RECORDING, stripped))


def test_no_branch_stacks(ask: Ask, tmp_path: Path) -> None:
    binary, recording = TESTBINS / "x86-64" / "interp.static", tmp_path / "perf.data"
    layout = Program.open(binary).image.layout
    (code,) = (segment for segment in layout.segments if segment.executable)
    mapping = Mmap(
        time=0, pid=1, tid=1, start=code.address, length=code.memory_size,
        file_offset=code.file_offset, path=str(binary), executable=True, build_id=None,
    )  # fmt: skip
    with PerfDataWriter(recording, [RecordedEvent("cycles", 1)]) as writer:
        writer.mmap(mapping)
        writer.samples(from_lists([[], []], pid=1))
    assert explained("Invalid perf script input!", ask("llvm-profgen", recording, binary))
    assert explained("without a branch stack", ask("lbr2pgo", recording, binary))


def test_too_few_samples(ask: Ask, tmp_path: Path) -> None:
    binary = TESTBINS / "x86-64" / "interp.pie"
    told = ask("perf2bolt", RECORDING, binary)
    assert explained("optimize better with 7.8x more samples", told)
