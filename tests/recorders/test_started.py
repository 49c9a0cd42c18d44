"""Start-ups that a function ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lbr2pgo
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.options import StartEnd

Record = Callable[..., Any]
Build = Callable[..., Path]
MACHINES = ["x86-64", *(pytest.param(m, marks=pytest.mark.slow) for m in ("aarch64", "riscv64"))]


def entered(program: Path, recording: Any) -> set[str]:
    """Functions of a program that is not moved, where branches led that were recorded."""
    functions = Program.open(program).functions
    to = np.concatenate([batch.to for batch in recording.stacks()])
    rows = functions.containing(to)
    return {functions.name[row] for row in rows[rows >= 0].tolist()}


def running(directory: Path) -> list[str]:
    """Command lines of processes that name a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [text for text in [path.read_bytes()] if os.fsencode(directory) in text]
        except OSError:  # has ended meanwhile
            continue
    return [os.fsdecode(text) for text in found]


@pytest.mark.parametrize("how", ["", "fork", "exec", "thread"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_start_ends_where_a_function_is_first_entered(
    machine: str, how: str, build: Build, record: Record, tmp_path: Path
) -> None:
    program = build("starts", machine, "-static")
    address = Program.open(program).address_of("serve")
    assert address is not None
    end = StartEnd("serve", program.resolve(), address)
    recording = record(program, how, period=5, duration=60, until=end)
    assert recording.result.exit_code == 0
    assert recording.result.warnings == ()
    names = entered(program, recording)
    assert {"early", "serve"} <= names
    assert "late" not in names
    deadline = time.monotonic() + 10
    while running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running(tmp_path)


def test_a_program_that_is_moved_ends_its_start_too(build: Build, tmp_path: Path) -> None:
    program, path = build("starts", "x86-64", "-fPIE", "-pie"), tmp_path / "perf.data"
    made = lbr2pgo.record([str(program)], output=path, until="serve")
    assert made.is_written
    assert made.warnings == ()


def test_a_start_that_does_not_end_is_told_and_kept(build: Build, tmp_path: Path) -> None:
    program, path = build("starts"), tmp_path / "perf.data"
    made = lbr2pgo.record([str(program), "x"], output=path, until="never")
    assert made.is_written
    (warning,) = made.warnings
    assert warning.startswith("never was never entered: the start-up is all that ran, 10 seconds")
    slow = lbr2pgo.record([str(program)], output=path, until="never", startup=0.5, period=997)
    assert slow.is_written
    assert "0.5 seconds at most" in slow.warnings[0]


def test_a_function_that_another_program_has_is_none_of_this_one(
    build: Build, record: Record
) -> None:
    program = build("starts", "x86-64", "-static")
    address = Program.open(program).address_of("early")
    assert address is not None
    other = StartEnd("early", program.with_name("other"), address)
    recording = record(program, "x", until=other, duration=60)
    assert "early was never entered" in recording.result.warnings[0]
