"""fdata as counts: made into fdata again, they are the same rows."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import C_SOURCES, RandomTraces, build, counts_of, lines_of
from builders.elf import Function, elf
from builders.fixtures import Tool
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata, FdataSamples
from lbr2pgo.profiles.bolt.fdata.fdata_text import parse
from lbr2pgo.profiles.bolt.fdata.placed_counts import counts_of_fdata
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replay import replay


@pytest.mark.parametrize("name", ["x86-64-interp.pie", "x86-64-shapes.pie", "aarch64-shapes.pie"])
def test_recorded_rows_come_back(name: str) -> None:
    machine, _, binary = name.rpartition("-")
    recording = TESTBINS / "recordings" / f"{name}.perf.data"
    found = read_and_replay(Inputs((recording,), TESTBINS / machine / binary))
    rows, _ = fdata_from_counts(found.counts, found.program)
    again, _ = fdata_from_counts(counts_of_fdata(rows, found.program), found.program)
    assert lines_of(again) == lines_of(rows)


def test_rows_of_random_traces_come_back(tool: Tool, tmp_path: Path) -> None:
    flags = ("-O2", "-fPIE", "-pie", "-fuse-ld=lld", "-Wl,-q")
    program = Program.open(build(tmp_path / "random", C_SOURCES, tool("clang-22"), *flags))
    rows, _ = fdata_from_counts(counts_of(RandomTraces(program, seed=3).draw(500)), program)
    again, _ = fdata_from_counts(counts_of_fdata(rows, program), program)
    assert lines_of(again) == lines_of(rows)


def test_what_goes_on_to_the_next_block_is_no_branch() -> None:
    found = read_and_replay(Inputs((RECORDING,), PIE))
    rows, _ = fdata_from_counts(found.counts, found.program)
    flow = replay(counts_of_fdata(rows, found.program), found.program)
    left = np.flatnonzero(flow.branch_from >= 0)
    code, row = flow.instructions, flow.branch_from[left]
    assert len(left) > 50
    behind = code.address[row] + code.size[row]
    goes_on = (flow.branches.to[left] == behind) & (code.kind[row] <= Kind.COND)
    assert not goes_on.any()


def test_blocks_ran_as_often_as_in_the_recording() -> None:
    """At least as often as fdata tells, which knows no returns and not where stacks begin."""
    found = read_and_replay(Inputs((RECORDING,), PIE))
    rows, _ = fdata_from_counts(found.counts, found.program)
    flow = replay(counts_of_fdata(rows, found.program), found.program)
    assert not flow.judged.valid.size - np.count_nonzero(flow.judged.valid)
    shared = np.isin(flow.instructions.address, found.flow.instructions.address)
    executed = dict(zip(flow.instructions.address[shared].tolist(),
                        flow.executed[shared].tolist(), strict=True))  # fmt: skip
    recorded = dict(zip(found.flow.instructions.address.tolist(),
                        found.flow.executed.tolist(), strict=True))  # fmt: skip
    hot = [at for at, count in recorded.items() if count > 100]
    assert len(hot) > 50
    assert all(0.8 < executed[at] / recorded[at] < 1.3 for at in hot)


def test_samples_without_branches_come_to_nothing() -> None:
    none = np.zeros(0, np.uint64)
    samples = FdataSamples(none.astype(np.uint8), none.astype(np.int32), none, none)
    assert not len(counts_of_fdata(Fdata((), samples=samples), Program.open(PIE)))


def test_a_jump_that_is_the_first_instruction_leaves_its_block(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(bytes.fromhex("eb0290cc31c0c3"), 0x2000, [Function("f", 0x2000, 7)]))
    program = Program.open(path)
    fdata = parse(io.BytesIO(b"1 f 0 1 f 4 0 5\n"), "fdata")
    flow = replay(counts_of_fdata(fdata, program), program)
    assert dict(zip(flow.instructions.address.tolist(), flow.executed.tolist(), strict=True)) == {
        0x2000: 5,
        0x2002: 0,
        0x2003: 0,
        0x2004: 5,
        0x2006: 5,
    }
