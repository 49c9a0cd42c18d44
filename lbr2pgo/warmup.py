"""Compile the loops ahead of the first run, by converting one sample of a tiny program."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import from_lists
from lbr2pgo.profiles.formats.fdata import FdataOutput
from lbr2pgo.profiles.formats.llvm import LlvmOutput
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.record.perf_data_writer import PerfDataWriter, RecordedEvent
from lbr2pgo.support.errors import OutputError

PROGRAM = Path(__file__).with_name("warmup.elf")
_PID = 1


def warm_up() -> Path:
    """Compile every loop that `convert` needs of perf.data and text, unless it is kept already.

    Gives the directory in which they are kept; raises OutputError if there is none.
    """
    from lbr2pgo.native.loop_cache import directory

    kept_in = directory()
    if kept_in is None:
        raise OutputError(
            "compiled loops can't be kept: no directory for them can be written",
            cure="Set NUMBA_CACHE_DIR to one that can, here and where lbr2pgo will run.",
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profiles = folder / "perf.data", folder / "perf.txt"
        _write_perf_data(profiles[0], *_loop_branch())
        _write_text(profiles[1], *_loop_branch())
        for profile in profiles:
            convert(
                ConvertOptions(
                    (profile,),
                    PROGRAM,
                    outputs=(LlvmOutput(folder / "profile"), FdataOutput(folder / "fdata")),
                )
            )
    return kept_in


def _loop_branch() -> tuple[int, int]:
    """The program's one backward branch: its address and its target."""
    program = Program.open(PROGRAM)
    table = program.instructions_for(program.functions.start)
    (row,) = np.flatnonzero((table.kind == Kind.COND) & (table.target < table.address))
    return int(table.address[row]), int(table.target[row])


def _write_perf_data(path: Path, source: int, target: int) -> None:
    layout = Program.open(PROGRAM).image.layout
    with PerfDataWriter(path, [RecordedEvent("branches", 1)]) as writer:
        for segment in layout.segments:
            writer.mmap(
                Mmap(
                    time=0,
                    pid=_PID,
                    tid=_PID,
                    start=segment.address,
                    length=segment.memory_size,
                    file_offset=segment.file_offset,
                    path=str(PROGRAM),
                    executable=segment.executable,
                    build_id=layout.build_id,
                )
            )
        writer.samples(from_lists([[(source, target, 0)] * 3], pid=_PID))


def _write_text(path: Path, source: int, target: int) -> None:
    entries = f" {source:#x}/{target:#x}/P/-/-/0 " * 3
    path.write_text(f"{target:x} {entries}\n" * 2)
