"""Inputs that no program makes: every branch another one, and a function of a million branches.

Called with the folder of the inputs that `run.py` made.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import numpy as np
from tools import OURS, Case, commands

from lbr2pgo.program.image import Image
from lbr2pgo.record.perf_data_writer import PerfDataWriter, RecordedEvent
from lbr2pgo.spaces import Mmap
from lbr2pgo.stacks import BranchStacks

SAMPLES, DEPTH = 40_000, 32
BRANCHES = 1_000_000


def unique_branches(binary: Path, out: Path) -> None:
    """Random addresses in the code of a program: no entry is like another."""
    chance = np.random.default_rng(1)
    image = Image.open(binary)
    code = next(s for s in image.layout.segments if s.executable)
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
    source, program, dump = folder / "giant.s", folder / "giant", folder / "giant.txt"
    lines = " jz 1f\n1:\n" * BRANCHES
    head = ".globl _start\n.type _start,@function\n_start:\n"
    source.write_text(f"{head}{lines} ret\n.size _start,.-_start\n")
    command = ["clang-22", "-g", "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,--emit-relocs"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    image = Image.open(program)
    code = next(s for s in image.layout.segments if s.executable)
    first, last = code.address, code.address + code.file_size - 1
    dump.write_text(f"{last:x} " + f" {last:#x}/{first:#x}/P/-/-/0" * DEPTH + "\n")
    return program, dump


def _report(name: str, tool: str, command: list[str]) -> None:
    cost = measure.run(command)
    print(f"{name}: {tool} {cost.cpu:.1f} s CPU, {cost.peak:.0f} MB")


def main() -> None:
    """Print what each costs lbr2pgo and, where they take it, its peers."""
    folder = Path(sys.argv[1])
    case = Case("", folder / "unique.perf.data", folder / "sq")
    unique_branches(case.binary, case.profile)
    with tempfile.TemporaryDirectory() as out:
        for tool, command in commands(case, Path(out)).items():
            _report(f"{SAMPLES * DEPTH:,} different branches", tool, command)
        program, dump = giant_function(folder)
        ours = [sys.executable, "-m", "lbr2pgo", "convert", str(dump), "--binary", str(program)]
        fdata = ["--fdata", str(Path(out) / "giant.fdata")]
        _report(f"a function of {BRANCHES:,} branches", OURS, [*ours, *fdata])


if __name__ == "__main__":
    main()
