"""perf.data as perf itself and quipper read it, on recordings of many ages and machines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.fixtures import Corpus, Run, Tool

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import (
    ABORT,
    IN_TRANSACTION,
    MISPREDICTED,
    MISSING,
    PREDICTED,
    cycles_of,
)
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_script.reader import PerfScript

Sample = tuple[int, int, int, str, int, tuple[str, ...]]

CORPUS = [
    "autofdo/test.lbr.zst",
    "autofdo/propeller_sample_1.perfdata1.zst",
    "quipper/perf.data.branch-4.14",
    "quipper/perf.data.branch_stack_hw_index",
    pytest.param("sqlite/sq.perf.data.zst", marks=pytest.mark.slow),
]
LINE = re.compile(
    r"\s*(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+"
    r"(?:(.+?):\s+([0-9a-f]+)(?: \[unknown\])?((?:\s+0x\S+/)*)|(PERF_\w+.*))"
)


def printed_cycles(flags: int) -> int:
    """As perf prints them: 0 where there are none."""
    cycles = cycles_of(flags)
    return 0 if cycles == MISSING else cycles


def entry_texts(source: PerfData) -> Iterator[Sample]:
    """(pid, tid, time, event, ip, stack), the stack written as perf script writes it."""
    names = [event.name for event in source.info.events]
    for batch in source.batches():
        cycles = list(map(printed_cycles, batch.flags.tolist()))
        entries = [
            f"{a:#x}/{b:#x}/{letters(flags)}/{c}"
            for (a, b, flags), c in zip(batch.entries.tolist(), cycles, strict=True)
        ]
        for i in range(len(batch)):
            stack = tuple(entries[batch.offsets[i] : batch.offsets[i + 1]])
            yield (
                int(batch.pid[i]), int(batch.tid[i]), int(batch.time[i]),
                names[batch.event[i]], int(batch.ip[i]), stack,
            )  # fmt: skip


def letters(flags: int) -> str:
    outcome = "M" if flags & MISPREDICTED else "P" if flags & PREDICTED else "-"
    return f"{outcome}/{'-X'[bool(flags & IN_TRANSACTION)]}/{'-A'[bool(flags & ABORT)]}"


def without_type(entry: str) -> str:
    return "/".join(entry.split("/")[:6])


def perf_script(perf: str, run: Run, path: Path, fields: str) -> Iterator[re.Match[str]]:
    events = ["--show-mmap-events", "--show-task-events"]
    text = run(perf, "script", "--ns", "-G", "-F", fields, *events, "-i", path).stdout
    for line in text.splitlines():
        if line.strip():
            match = LINE.fullmatch(line.rstrip())
            assert match, line
            yield match


def as_perf_writes(event: SpaceEvent) -> str:
    match event:
        case Mmap():
            extent = f"{event.start:x} {event.length:x}"
            return f"MMAP {event.pid}/{event.tid} {extent} {event.path}"
        case Comm():
            return f"COMM{' exec' * event.is_exec} {event.name}:{event.pid}/{event.tid}"
        case Fork():
            return f"FORK {event.pid}:{event.tid} of {event.parent_pid}"
        case Exit():
            return f"EXIT {event.pid}:{event.tid}"


def shortened(text: str) -> str:
    """What `as_perf_writes` gives, from perf's own line."""
    patterns = {
        r"PERF_RECORD_MMAP2? (\S+): \[(?:0x)?(\w+)\((?:0x)?(\w+)\) @ .*?\]: \S+ (.*)": (
            r"MMAP \1 \2 \3 \4"
        ),
        r"PERF_RECORD_COMM( exec)?: (.*)": r"COMM\1 \2",
        r"PERF_RECORD_FORK\((\S+)\):\((\d+):\d+\)": r"FORK \1 of \2",
        r"PERF_RECORD_EXIT\((\S+)\):.*": r"EXIT \1",
    }
    for pattern, short in patterns.items():
        if re.fullmatch(pattern, text):
            return re.sub(pattern, short, text)
    raise AssertionError(text)


def check_against_perf_script(
    perf: str, run: Run, path: Path, *, stacks: bool, group_member: str | None = None
) -> int:
    """`group_member` names an event whose samples perf makes up from those of its leader."""
    source = PerfData(path)
    expected: list[Sample] = []
    expected_events: list[tuple[int, str]] = []
    fields = "pid,tid,time,event,ip" + ",brstack" * stacks
    for match in perf_script(perf, run, path, fields):
        pid, tid, seconds, nanoseconds, event, ip, stack, record = match.groups()
        time = int(seconds) * 10**9 + int(nanoseconds)
        if record:
            expected_events.append((time, shortened(record)))
        elif event != group_member:
            entries = tuple(map(without_type, stack.split()))
            expected.append((int(pid), int(tid), time, event, int(ip, 16), entries))
    assert sorted(entry_texts(source)) == sorted(expected)
    found = [(event.time, as_perf_writes(event)) for event in source.space_events()]
    assert sorted(found) == sorted(expected_events)
    return len(expected)


@pytest.mark.parametrize("name", CORPUS)
def test_agrees_with_perf_script(corpus: Corpus, tool: Tool, run: Run, name: str) -> None:
    path = corpus(name)
    assert check_against_perf_script(tool("perf"), run, path, stacks=True)
    assert not [reason for reason in PerfData(path).health() if "throttled" not in reason]


@pytest.mark.parametrize("name", ["perf.data.branch-4.14", "perf.data.branch_stack_hw_index"])
def test_agrees_with_quipper(corpus: Corpus, name: str) -> None:
    text = corpus(f"quipper/{name}.parsed.pb_text.zst").read_text()
    fields = re.findall(r"^ +(from_ip|to_ip|mispredicted|cycles|sample_time_ns): (\S+)", text, re.M)
    source = PerfData(corpus(f"quipper/{name}"))
    entries = [row for batch in source.batches() for row in batch.entries]
    branch = [value for key, value in fields if key != "sample_time_ns"]
    assert branch == [
        str(part).lower()
        for source_, target, flags in entries
        for part in (source_, target, bool(flags & MISPREDICTED), printed_cycles(flags))
    ]
    assert len(source.space_events()) == len(
        re.findall(r"^  (mmap|comm|fork|exit)_event", text, re.M)
    )
    assert len(source.info.build_ids) == len(re.findall(r"^build_ids", text, re.M))


def test_reads_a_compressed_recording_with_an_attr_newer_than_perf_6_1(corpus: Corpus) -> None:
    source = PerfData(corpus("quipper/sleep.compressed.data"))
    (batch,) = source.batches()
    paths = {event.path for event in source.space_events() if isinstance(event, Mmap)}
    assert (source.info.machine, source.info.events[0].name) == ("aarch64", "cycles:P")
    assert len(batch) == 8
    assert len(batch.entries) == 0
    assert sorted(batch.time) == list(batch.time)
    assert "/usr/bin/sleep" in paths
    assert not source.health()


def test_agrees_with_perf_script_on_what_perf_pipes(
    corpus: Corpus, tool: Tool, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "piped"
    content = corpus("autofdo/propeller_sample_1.perfdata1.zst")
    run(tool("perf"), "inject", "-i", content, "-o", path, "--buildid-all")
    with path.open("rb") as file:
        assert file.read(9)[:8] == b"PERFILE2"
    piped = subprocess.run(
        [tool("perf"), "inject", "-i", content, "-o", "-"], capture_output=True, check=True
    ).stdout
    path.write_bytes(piped)
    assert piped[8:16] == (16).to_bytes(8, "little")
    assert check_against_perf_script(tool("perf"), run, path, stacks=True)
    assert PerfData(path).info.events[0].branch_sample_type == 8


@pytest.mark.parametrize(
    "options",
    [
        ["-e", "cpu-clock,task-clock,page-faults"],
        ["-e", "cpu-clock", "-g", "-d", "--sample-cpu", "-P", "-W"],
        ["-e", "cpu-clock", "--call-graph", "dwarf,4096", "--user-regs=ip,sp"],
        ["-e", "{cpu-clock,page-faults}:S", "-T"],
        ["-e", "cpu-clock", "-z"],
        ["-e", "cpu-clock", "--no-samples"],
        ["-e", "cpu-clock", "--all-cgroups", "--namespaces", "--switch-events", "--buildid-mmap"],
    ],
    ids=["several", "callchain", "dwarf", "group", "packed", "none", "others"],
)
@pytest.mark.parametrize("piped", [False, True])
def test_agrees_with_perf_script_on_live_recordings(
    tool: Tool, run: Run, tmp_path: Path, options: list[str], piped: bool
) -> None:
    perf = tool("perf")
    path = tmp_path / "perf.data"
    command = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; true & wait"]
    target = "-" if piped else str(path)
    done = subprocess.run(
        [perf, "record", "-q", *options, "-o", target, "--", *command], capture_output=True
    )
    if done.returncode != 0:
        pytest.skip(f"perf record is not permitted here: {done.stderr.decode()[-200:]}")
    if piped:
        path.write_bytes(done.stdout)
    member = "page-faults" if "-T" in options else None
    check_against_perf_script(perf, run, path, stacks=False, group_member=member)


RANDOM = np.random.default_rng(7)


def random_sample(i: int) -> build.Sample:
    kernel = (2**64 - 128, *(2**63 + i for i in RANDOM.integers(2**62, size=3).tolist()))
    user = (2**64 - 512, *RANDOM.integers(1, 2**47, RANDOM.integers(1, 300)).tolist())
    entries = RANDOM.integers(1, 2**47, (RANDOM.integers(1, 33), 2)).tolist()
    return build.Sample(
        tuple((source, target, PREDICTED) for source, target in entries),
        ip=user[1], pid=1, tid=1, time=i, callchain=(*kernel * (i % 3 == 0), *user),
    )  # fmt: skip


def test_call_chains_are_those_of_perf_script(tool: Tool, run: Run, tmp_path: Path) -> None:
    kinds = build.IP | build.TID | build.TIME | build.CALLCHAIN | build.BRANCH_STACK
    event = build.Event(kinds)
    records = b"".join(random_sample(i).encode(event) for i in range(1, 200))
    path, text = tmp_path / "perf.data", tmp_path / "script.txt"
    path.write_bytes(build.file_form([event], records))
    perf = [tool("perf"), "script", "--max-stack", "10000", "-F", "ip,brstack", "-i", path]
    text.write_text(run(*perf).stdout)
    (found,) = PerfData(path).batches()
    (expected,) = PerfScript(text).batches()
    assert found.chains is not None
    assert expected.chains is not None
    assert len(found.chains.frames) > 10_000
    for name in ("frames", "offsets"):
        assert (getattr(found.chains, name) == getattr(expected.chains, name)).all()
    for name in ("entries", "offsets"):
        assert (getattr(found, name) == getattr(expected, name)).all()


def test_agrees_with_perf_script_on_a_directory(tool: Tool, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "recording"
    command = [
        tool("perf"),
        "record",
        "-q",
        "--threads",
        "-e",
        "cpu-clock",
        "-o",
        path,
        "--",
        "true",
    ]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("perf record is not permitted here")
    assert path.is_dir()
    check_against_perf_script(tool("perf"), run, path, stacks=False)
