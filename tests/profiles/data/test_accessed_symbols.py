"""What can't be said of data, and why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.profiles.data.order import DataOrderOutput
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.perf_data_writer import PerfDataWriter, RecordedEvent
from lbr2pgo.recorders.software import record_software
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.errors import OutputError

from .conftest import recorded


def without_branches(batch: BranchStacks, rows: I64) -> BranchStacks:
    """Some samples, as the first event's."""
    n = len(rows)
    assert batch.accesses is not None
    return BranchStacks(
        np.zeros((0, 3), np.uint64), np.zeros(n + 1, np.int64), batch.pid[rows], batch.tid[rows],
        batch.time[rows], np.zeros(n, np.int32), batch.ip[rows], batch.weight[rows],
        accesses=batch.accesses[rows],
    )  # fmt: skip


def test_recordings_without_accesses_say_how_to_have_some(program: Path, tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    options = RecordOptions(output=recording, command=(str(program),), period=32, emulate=True)
    record_software(options)
    with pytest.raises(OutputError, match="does not say which data was accessed") as caught:
        convert(ConvertOptions((recording,), program, outputs=(DataOrderOutput(tmp_path / "o"),)))
    assert "record --data" in str(caught.value)
    assert not (tmp_path / "o").exists()


def test_objects_that_share_a_name_are_told(tool: Tool, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.c").write_text(
            f"static volatile int same[64]; volatile int of_{name}[64];"
            f"void run_{name}(void) {{ for (int i = 0; i < 4000; i++)"
            f" {{ same[i & 63]++; of_{name}[i & 63]++; }} }}"
        )
    (tmp_path / "main.c").write_text("void run_a(), run_b(); int main() { run_a(); run_b(); }")
    command = [tool("clang-22"), "-O1", "a.c", "b.c", "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    recording = recorded(tmp_path / "program", tmp_path / "perf.data")
    output = DataOrderOutput(tmp_path / "order")
    done = convert(ConvertOptions((recording,), tmp_path / "program", outputs=(output,)))
    assert done.tallies["data_named/two_of_one_name"] == 2
    names = output.path.read_text().splitlines()[1:]
    assert {"of_a", "of_b"} <= set(names)
    assert "same" not in names


def test_stripped_programs_have_no_names(program: Path, tool: Tool, tmp_path: Path) -> None:
    stripped = tmp_path / "program"
    subprocess.run([tool("strip"), program, "-o", stripped], check=True)
    recording = recorded(stripped, tmp_path / "perf.data")
    with pytest.raises(OutputError):
        convert(ConvertOptions((recording,), stripped, outputs=(DataOrderOutput(tmp_path / "o"),)))


def test_accesses_that_hardware_sampled_serve_as_well(
    program: Path, recording: Path, tmp_path: Path
) -> None:
    """As perf mem record takes them: events of other names, and no branches, which are inferred."""
    source, written = PerfData(recording), tmp_path / "mem.data"
    event = RecordedEvent("cpu/mem-loads,ldlat=30/P", 100, 0)
    with PerfDataWriter(written, [event], with_accesses=True) as writer:
        for happening in source.space_events():
            writer.event(happening)
        for batch in source.batches():
            rows = np.flatnonzero(batch.event == 1)
            writer.samples(without_branches(batch, rows))
    outputs = [DataOrderOutput(tmp_path / name) for name in ("emulated", "sampled")]
    convert(ConvertOptions((recording,), program, outputs=(outputs[0],)))
    convert(ConvertOptions((written,), program, outputs=(outputs[1],), no_lbr=True))
    emulated, sampled = (output.path.read_text() for output in outputs)
    assert emulated == sampled
