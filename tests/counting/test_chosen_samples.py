"""Samples are chosen as perf script chooses them, by options of the same names."""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.perf_data import BRANCH_STACK, CPU, IP, TID, TIME, Event, Sample

from lbr2pgo.cli.selection import add_selection, counting_options
from lbr2pgo.counting.chosen_samples import Chooser, SampleChoice
from lbr2pgo.sources.base import StackSource
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_script.reader import PerfScript
from lbr2pgo.support.errors import InputError

EVENT = Event(IP | TID | TIME | CPU | BRANCH_STACK)
SECOND = 10**9
CHOICES = [
    ("--pid", "10"), ("--tid", "11"), ("--tid", "11,20"), ("--pid", "10", "--tid", "20"),
    ("--comm", "worker"), ("--comm", "app,late"), ("--comm", "nobody"),
    ("--cpu", "0"), ("--cpu", "1-2"), ("--cpu", "0,3", "--tid", "10"),
    ("--time", "2,4"), ("--time", "2.000000001,"), ("--time", ",3.5"), ("--time", "5.5,5.6"),
    ("--time", "1,3", "--comm", "app"),
]  # fmt: skip


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two processes, of which one has two threads; names change, and processors too."""

    def named(pid: int, tid: int, name: str, time: int) -> bytes:
        return build.comm(pid, tid, name, EVENT.trailer(pid, tid, time))

    def sample(pid: int, tid: int, time: int, cpu: int) -> bytes:
        stack = ((0x401010, 0x401020, 2),)
        return Sample(stack, ip=0x401000 + time % 97, pid=pid, tid=tid, time=time, cpu=cpu).encode(
            EVENT
        )

    records = [
        named(10, 10, "app", SECOND // 2),
        sample(10, 10, SECOND, 0),
        build.fork(10, 10, 11, SECOND, EVENT.trailer(10, 10, SECOND)),
        sample(10, 11, SECOND + 1, 1),
        named(10, 11, "worker", 2 * SECOND),
        sample(10, 11, 2 * SECOND, 1),
        sample(10, 10, 2 * SECOND + 1, 2),
        named(20, 20, "other", 3 * SECOND),
        sample(20, 20, 3 * SECOND, 3),
        sample(10, 10, 3 * SECOND + SECOND // 2, 0),
        sample(10, 11, 4 * SECOND, 3),
        named(20, 20, "late", 5 * SECOND),
        sample(20, 20, 5 * SECOND + SECOND // 2, 2),
        sample(10, 11, 6 * SECOND, 0),
    ]
    path = tmp_path_factory.mktemp("chosen") / "perf.data"
    path.write_bytes(build.file_form([EVENT], b"".join(records), {7: struct.pack("<II", 8, 8)}))
    return path


def choice_of(*words: str) -> SampleChoice:
    parser = argparse.ArgumentParser()
    add_selection(parser)
    return counting_options(parser.parse_args(words)).choice


def chosen(source: StackSource, choice: SampleChoice) -> list[tuple[int, int]]:
    """Thread and time of each."""
    chooser, found = Chooser(choice, source), []
    for batch in source.batches():
        rows = np.flatnonzero(chooser.of_processes(batch) & chooser.of_the_rest(batch))
        found += list(zip(batch.tid[rows].tolist(), batch.time[rows].tolist(), strict=True))
    return found


def perf(tool: Callable[[str], str], path: Path, *words: str) -> str:
    # perf script has --comms, of which it takes any beginning.
    command = [tool("perf"), "script", "-i", path, "--ns", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("words", CHOICES, ids=" ".join)
def test_they_are_those_of_perf_script(
    tool: Callable[[str], str], recording: Path, words: tuple[str, ...]
) -> None:
    printed = perf(tool, recording, *words, "-F", "tid,time")
    theirs = [
        (int(tid), int(seconds) * SECOND + int(rest))
        for tid, seconds, rest in re.findall(r"(\d+)\s+(\d+)\.(\d{9}):", printed)
    ]
    assert chosen(PerfData(recording), choice_of(*words)) == theirs


@pytest.mark.parametrize("words", CHOICES, ids=" ".join)
def test_printed_samples_are_chosen_alike(
    tool: Callable[[str], str], recording: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    text = tmp_path / "perf.txt"
    fields = "comm,pid,tid,cpu,time,event,ip,brstack"
    text.write_text(perf(tool, recording, "--show-task-events", "-F", fields))
    choice = choice_of(*words)
    assert chosen(PerfScript(text), choice) == chosen(PerfData(recording), choice)


@pytest.mark.parametrize(
    ("choice", "says"),
    [(SampleChoice(cpus=(1,)), "processors"), (SampleChoice(comms=("app",)), "called")],
)
def test_what_a_recording_does_not_say_is_an_error(
    choice: SampleChoice, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "perf.data"
    event = Event()
    path.write_bytes(build.file_form([event], Sample(((1, 2, 0),)).encode(event)))
    with pytest.raises(InputError, match=says):
        chosen(PerfData(path), choice)


@pytest.mark.parametrize(
    "words",
    [("--time", "5"), ("--time", "a,b"), ("--time", "4,2"), ("--cpu", "x"), ("--cpu", "1-")],
)
def test_a_choice_that_is_none_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="2"):
        choice_of(*words)
