"""Inputs that no program makes, and a file that is larger than the memory there is.

Every branch another one; a function of a million branches; a unit of a million lines. Called with
the folder of the inputs that `run.py` made.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import numpy as np
from tools import OURS, Case, commands

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import Segment
from lbr2pgo.record.perf_data_writer import PerfDataWriter, RecordedEvent

SAMPLES, DEPTH = 40_000, 32
BRANCHES = 1_000_000
FUNCTIONS, STATEMENTS = 50_000, 20
PROFILING = "-fdebug-info-for-profiling"
ADDRESS_SPACE = 700 * 10**6
"""Bytes; the libraries alone take half of it."""


def unique_branches(binary: Path, out: Path) -> None:
    """Random addresses in the code of a program: no entry is like another."""
    chance = np.random.default_rng(1)
    image, code = Image.open(binary), _code(binary)
    entries = np.zeros((SAMPLES * DEPTH, 3), np.uint64)
    entries[:, :2] = chance.integers(code.address, code.address + code.file_size, (len(entries), 2))
    with PerfDataWriter(out, [RecordedEvent("branches", 1)]) as writer:
        writer.mmap(
            Mmap(
                time=0,
                pid=1,
                tid=1,
                start=code.address,
                length=code.memory_size,
                file_offset=code.file_offset,
                path=str(binary),
                executable=True,
                build_id=image.build_id,
            )
        )
        writer.samples(_stacks(entries))


def _stacks(entries: np.ndarray) -> BranchStacks:
    n = len(entries) // DEPTH
    zeros, ones = np.zeros(n, np.uint64), np.ones(n, np.int32)
    return BranchStacks(
        entries=entries,
        offsets=np.arange(0, len(entries) + 1, DEPTH),
        pid=ones, tid=ones, time=zeros, event=np.zeros(n, np.int32), ip=zeros,
        weight=np.ones(n, np.uint64),
    )  # fmt: skip


def giant_function(folder: Path) -> tuple[Path, Path]:
    """One function with a million conditional branches: program and dump."""
    source, program = folder / "giant.s", folder / "giant"
    lines = " jz 1f\n1:\n" * BRANCHES
    head = ".globl _start\n.type _start,@function\n_start:\n"
    source.write_text(f"{head}{lines} ret\n.size _start,.-_start\n")
    command = ["clang-22", "-g", "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,--emit-relocs"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    code = _code(program)
    return program, _dump(folder / "giant.txt", code.address, code.address + code.file_size - 1)


def giant_unit(folder: Path) -> tuple[Path, Path]:
    """One unit with a million rows of lines, of which the recording names the first few."""
    source, program = folder / "unit.c", folder / "unit"
    body = "x += 3;\nx ^= 5;\n" * (STATEMENTS // 2)
    functions = (f"int f{i}(int x) {{\n{body}return x;\n}}\n" for i in range(FUNCTIONS))
    source.write_text("".join(functions) + "void _start(void) { f0(1); for (;;); }\n")
    command = ["clang-22", "-O0", "-g1", PROFILING, "-nostdlib", "-static", "-fuse-ld=lld"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    code = _code(program)
    return program, _dump(folder / "unit.txt", code.address, code.address + 4)  # push; mov; mov


def _code(program: Path) -> Segment:
    return next(s for s in Image.open(program).layout.segments if s.executable)


def _dump(path: Path, first: int, last: int) -> Path:
    """A sample that ran from one address to another, over and over."""
    path.write_text(f"{last:x} " + f" {last:#x}/{first:#x}/P/-/-/0" * DEPTH + "\n")
    return path


def _report(name: str, tool: str, command: list[str]) -> None:
    cost = measure.run(command)
    print(f"{name}: {tool} {cost.cpu:.1f} s CPU, {cost.peak:.0f} MB")


def _convert(profile: Path, binary: Path, *outputs: str) -> list[str]:
    inputs = [str(profile), "--binary", str(binary)]
    return [sys.executable, "-m", "lbr2pgo", "convert", *inputs, *outputs]


def main() -> None:
    """Print what each costs lbr2pgo and, where they take it, its peers."""
    folder = Path(sys.argv[1])
    case = Case("", folder / "unique.perf.data", folder / "sq")
    unique_branches(case.binary, case.profile)
    with tempfile.TemporaryDirectory() as out:
        for tool, command in commands(case, Path(out)).items():
            _report(f"{SAMPLES * DEPTH:,} different branches", tool, command)
        fdata, profile = f"--fdata={out}/fdata", f"--llvm={out}/profile"
        program, dump = giant_function(folder)
        command = _convert(dump, program, fdata)
        _report(f"a function of {BRANCHES:,} branches", OURS, command)
        program, dump = giant_unit(folder)
        command = _convert(dump, program, profile)
        _report(f"a unit of {FUNCTIONS * STATEMENTS:,} lines", OURS, command)
        large = max(folder.glob("sq.*.perf.data"), key=lambda path: path.stat().st_size)
        limited = ["prlimit", f"--as={ADDRESS_SPACE}", *_convert(large, folder / "sq", profile)]
        sizes = f"{large.stat().st_size:,} bytes in {ADDRESS_SPACE:,} bytes of address space"
        _report(sizes, OURS, limited)


if __name__ == "__main__":
    main()
