"""Inputs that no program makes, and files that are larger than the memory there is.

Every branch another one; a function of a million branches; a unit of a million lines; a program of
3 GB; a recording of 10 GB, which is written to the folder and deleted. Called with the folder of
the inputs that `run.py` made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
from tiling import tile
from tools import OURS, Case, commands

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import Segment
from lbr2pgo.recorders.perf_data_writer import PerfDataWriter, RecordedEvent

SAMPLES, DEPTH = 40_000, 32
BRANCHES = 1_000_000
FUNCTIONS, STATEMENTS = 50_000, 20
PROFILING = "-fdebug-info-for-profiling"
ADDRESS_SPACE = 700 * 10**6
"""Bytes; the libraries alone take half of it."""
SPARSE = 3 << 30
"""Bytes of a program."""
LARGE_RECORDING = 10**10
"""Bytes at least."""


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


def sparse_program(program: Path, target: Path) -> Path:
    """A copy with a hole behind its last section, which only its size tells of."""
    shutil.copy(program, target)
    os.truncate(target, SPARSE)
    return target


def large_recording(recording: Path, target: Path) -> Path:
    """One whose samples come again and again."""
    tile(recording, -(-LARGE_RECORDING // recording.stat().st_size), target)
    return target


def _code(program: Path) -> Segment:
    return next(s for s in Image.open(program).layout.segments if s.executable)


def _dump(path: Path, first: int, last: int) -> Path:
    """A sample that ran from one address to another, over and over."""
    path.write_text(f"{last:x} " + f" {last:#x}/{first:#x}/P/-/-/0" * DEPTH + "\n")
    return path


def _convert(profile: Path, binary: Path, *outputs: str) -> list[str]:
    inputs = [str(profile), "--binary", str(binary)]
    return [sys.executable, "-m", "lbr2pgo", "convert", *inputs, *outputs]


def inputs(folder: Path, out: Path) -> Iterator[tuple[str, str, list[str]]]:
    """What each is called, a tool, and its command; made when it is asked for."""
    case = Case("", folder / "unique.perf.data", folder / "sq")
    fdata, profile = f"--fdata={out}/fdata", f"--llvm={out}/profile"
    unique_branches(case.binary, case.profile)
    for tool, command in commands(case, out).items():
        yield f"{SAMPLES * DEPTH:,} different branches", tool, command
    program, dump = giant_function(folder)
    yield f"a function of {BRANCHES:,} branches", OURS, _convert(dump, program, fdata)
    program, dump = giant_unit(folder)
    yield f"a unit of {FUNCTIONS * STATEMENTS:,} lines", OURS, _convert(dump, program, profile)
    recording, program = folder / "sq.1.perf.data", sparse_program(case.binary, out / "sparse")
    yield f"a program of {SPARSE:,} bytes", OURS, _convert(recording, program, profile, fdata)
    large = large_recording(recording, out / "large.perf.data")
    size = f"{large.stat().st_size:,} bytes of perf.data"
    yield size, OURS, _convert(large, case.binary, profile, fdata)
    limited = ["prlimit", f"--as={ADDRESS_SPACE}", *_convert(large, case.binary, profile, fdata)]
    yield f"{size} in {ADDRESS_SPACE:,} bytes of address space", OURS, limited


def main() -> None:
    """Print what each costs lbr2pgo and, where they take it, its peers."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=folder) as out:
        for name, tool, command in inputs(folder, Path(out)):
            cost = measure.run(command)
            print(f"{name}: {tool} {cost.cpu:.1f} s CPU, {cost.peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
