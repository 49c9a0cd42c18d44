from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import ROOT, Corpus, Run, Tool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.recorders.perf_data_writer import (
    MarkedChains,
    PerfDataWriter,
    RecordedEvent,
    RecordingFacts,
)
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.errors import OutputError

HW_INDEX = 1 << 17
EVENT = RecordedEvent("branches:u", 1009)
FACTS = RecordingFacts(
    hostname="a host", os_release="6.1", version="0.1", machine="x86_64",
    cpu_description="simulated", cpu_id="GenuineIntel,6,85,4", cpus=4, total_memory=1 << 30,
    command=("lbr2pgo", "record", "a b"),
)  # fmt: skip
SPACES: list[SpaceEvent] = [
    Comm(10, 10, 5, "the program", is_exec=True),
    Mmap(10, 10, 6, 0x400000, 0x5000, 0x1000, "/bin/with blank", "ab" * 20),
    Mmap(10, 10, 7, 0x500000, 0x5000, 0, "/lib/é", "cd" * 8),
    Mmap(10, 10, 8, 0x600000, 0x5000, 0, "//anon", executable=False),
    Mmap(-1, -1, 8, 0xFFFFFFFF80000000, 0x5000, 0, "[kernel.kallsyms]_text"),
    Fork(11, 10, 11, 9),
    Fork(10, 10, 12, 9),
    Exit(11, 11, 20),
]


def batch(
    stacks: Sequence[Sequence[tuple[int, int, int]]], event: Sequence[int] | None = None
) -> BranchStacks:
    n = len(stacks)
    entries = [entry for stack in stacks for entry in stack]
    return BranchStacks(
        entries=np.array(entries, np.uint64).reshape(-1, 3),
        offsets=np.cumsum([0, *map(len, stacks)]),
        pid=np.arange(10, 10 + n, dtype=np.int32),
        tid=np.arange(20, 20 + n, dtype=np.int32),
        time=np.arange(100, 100 + n, dtype=np.uint64),
        event=np.array(event or [0] * n, np.int32),
        ip=np.full(n, 0x401234, np.uint64),
        weight=np.ones(n, np.uint64),
    )


STACKS = [[(0x401010, 0x401020, 2), (0x401030, 0x401040, 1 | 7 << 4)], [], [(1, 2, 3)]]


def assert_equal(found: BranchStacks, expected: BranchStacks) -> None:
    for field in dataclasses.fields(BranchStacks):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name))


WORD = st.integers(0, 2**64 - 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stacks=st.lists(st.lists(st.tuples(WORD, WORD, WORD), max_size=4), min_size=1, max_size=5),
    cpu=st.booleans(),
    callchain=st.booleans(),
    hw_index=st.booleans(),
    data=st.data(),
)
def test_samples_come_back_as_they_were(
    tmp_path: Path,
    stacks: list[list[tuple[int, int, int]]],
    cpu: bool,
    callchain: bool,
    hw_index: bool,
    data: st.DataObject,
) -> None:
    n = len(stacks)
    events = [
        dataclasses.replace(EVENT, branch_sample_type=9 | HW_INDEX * hw_index, name=name)
        for name in ("one", "two")
    ]
    expected = batch(stacks, data.draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n)))
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    chains = MarkedChains(
        np.arange(sum(lengths), dtype=np.uint64), np.cumsum([0, *lengths], dtype=np.int64)
    )
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, events, with_cpu=cpu, with_callchain=callchain) as writer:
        writer.samples(
            expected,
            callchains=chains if callchain else None,
            cpu=np.arange(n, dtype=np.uint32) if cpu else None,
            hw_index=np.arange(n, dtype=np.uint64) if hw_index else None,
        )
    source = PerfData(path)
    (found,) = source.batches()
    cpus = np.arange(n, dtype=np.int32) if cpu else None
    assert_equal(dataclasses.replace(found, chains=None), dataclasses.replace(expected, cpu=cpus))
    assert (found.chains is not None) == callchain
    if found.chains is not None:
        assert found.chains.frames.tolist() == chains.addresses.tolist()
        assert found.chains.offsets.tolist() == chains.offsets.tolist()
    assert [e.name for e in source.info.events] == ["one", "two"]
    assert not source.health()


def test_space_events_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [EVENT], with_cpu=True) as writer:
        for event in SPACES:
            writer.event(event)
        writer.finished_round()
        writer.lost(3, pid=10, tid=10, time=9)
    source = PerfData(path)
    assert list(source.space_events()) == SPACES
    assert source.info.build_ids == {"/bin/with blank": "ab" * 20, "/lib/é": "cd" * 8}
    assert list(source.health().values()) == [3]


def test_facts_of_the_header_come_back(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [EVENT], FACTS) as writer:
        writer.samples(batch(STACKS))
        writer.samples(batch([]))
        writer.samples(batch(STACKS))
    info = PerfData(path).info
    assert info.machine == "x86_64"
    assert info.details == {
        "host": "a host", "kernel": "6.1", "perf": "0.1", "cpu": "simulated", "cpus": "4",
        "cpuid": "GenuineIntel,6,85,4", "memory": "1048576 KiB", "command": "lbr2pgo record a b",
        "time of first sample": "100 ns", "time of last sample": "102 ns",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["any", "call_stack"])
def test_only_recordings_of_branches_are_shown_as_such(name: str, tmp_path: Path) -> None:
    """perf report shows calls where the header does not promise branches."""
    event = dataclasses.replace(EVENT, branch_sample_type=1 | 1 << BRANCH_FILTER_BITS[name])
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [event], FACTS):
        pass
    features = int.from_bytes(path.read_bytes()[72:104], "little")
    assert bool(features >> 15 & 1) is (name == "any")


def test_perf_reads_all_of_it(tool: Tool, run: Run, tmp_path: Path) -> None:
    perf = tool("perf")
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [EVENT], FACTS, with_callchain=True) as writer:
        for event in SPACES:
            writer.event(event)
        chains = MarkedChains(np.array([2**64 - 512, 0x401234], np.uint64), np.array([0, 2, 2, 2]))
        writer.samples(batch(STACKS), callchains=chains)
        writer.samples(batch(STACKS))
        writer.finished_round()
    script = [perf, "script", "-G", "--ns", "-F", "pid,tid,time,event,brstack", "-i", path]
    lines = [" ".join(line.split()) for line in run(*script).stdout.splitlines()]
    assert sorted(lines) == sorted(2 * [
        "10/20 0.000000100: branches:u: 0x401010/0x401020/P/-/-/0/ 0x401030/0x401040/M/-/-/7/",
        "11/21 0.000000101: branches:u:",
        "12/22 0.000000102: branches:u: 0x1/0x2/P/-/-/0/",
    ])  # fmt: skip
    spaces = run(*script, "--show-mmap-events", "--show-task-events").stdout
    assert "COMM exec: the program:10/10" in spaces
    assert f"[0x400000(0x5000) @ 0x1000 <{'ab' * 20}>]: r-xp /bin/with blank" in spaces
    assert "FORK(11:11):(10:10)" in spaces
    assert "EXIT(11:11)" in spaces
    header = run(perf, "report", "--header-only", "-i", path).stdout
    for fact in ("hostname : a host", "cpudesc : simulated", "nrcpus avail : 4", "branch stack"):
        assert fact in header
    assert "ab" * 20 + " /bin/with blank" in run(perf, "buildid-list", "-i", path).stdout
    report = run(perf, "report", "--stdio", "-i", path)
    assert "Samples: 6  of event 'branches:u'" in report.stdout
    assert not report.stderr


def test_what_was_written_counts_though_the_process_is_killed(
    tool: Tool, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "perf.data"
    program = """
        import os, signal, sys
        from pathlib import Path
        sys.path[:0] = sys.argv[2:]
        from test_perf_data_writer import EVENT, SPACES, STACKS, batch
        from lbr2pgo.recorders.perf_data_writer import PerfDataWriter
        writer = PerfDataWriter(Path(sys.argv[1]), [EVENT])
        for event in SPACES:
            writer.event(event)
        writer.samples(batch(STACKS))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(program),
        str(path),
        str(Path(__file__).parent),
        str(ROOT / "tests"),
    ]
    assert subprocess.run(command).returncode == -9
    source = PerfData(path)
    (found,) = source.batches()
    assert_equal(found, batch(STACKS))
    assert list(source.space_events()) == SPACES
    assert not source.health()
    lines = run(tool("perf"), "script", "-F", "brstack", "-i", path).stdout.splitlines()
    assert len(lines) == len(STACKS)


def test_a_write_cut_short_leaves_the_records_before_it(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    writer = PerfDataWriter(path, [EVENT])
    writer.samples(batch(STACKS))
    whole = path.read_bytes()
    writer.samples(batch(STACKS))
    grown = path.read_bytes()
    path.write_bytes(whole[:104] + grown[104 : len(whole) + 30])
    source = PerfData(path)
    assert sum(map(len, source.batches())) == len(STACKS)
    assert not source.health()
    writer.finish()


def test_finishing_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [EVENT], FACTS) as writer:
        writer.samples(batch(STACKS))
        writer.finish()
        content = path.read_bytes()
    assert path.read_bytes() == content


def test_bulk_samples_are_written_fast(tmp_path: Path) -> None:
    n, depth = 4_096, 32
    words = np.random.default_rng(1).integers(0, 2**63, (n * depth, 3)).astype(np.uint64)
    expected = dataclasses.replace(batch([[]] * n), entries=words, offsets=np.arange(n + 1) * depth)
    path = tmp_path / "perf.data"
    with PerfDataWriter(path, [EVENT]) as writer:
        start = time.process_time()
        writer.samples(expected)
        seconds = time.process_time() - start
    (found,) = PerfData(path).batches()
    assert_equal(found, expected)
    assert seconds < len(words) / 1e6, "slower than a million entries a second"


@pytest.mark.parametrize(
    ("stacks", "words"),
    [
        (dataclasses.replace(batch(STACKS), weight=np.array([1, 2, 1], np.uint64)), "weights"),
        (batch([[], [(1, 2, 3)] * 2800]), "sample 1 needs"),
    ],
)
def test_refuses_what_the_format_can_not_hold(
    tmp_path: Path, stacks: BranchStacks, words: str
) -> None:
    with (
        PerfDataWriter(tmp_path / "perf.data", [EVENT]) as writer,
        pytest.raises(ValueError, match=words),
    ):
        writer.samples(stacks)


def test_refuses_senseless_events(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one"):
        PerfDataWriter(tmp_path / "a", [])
    indexed = dataclasses.replace(EVENT, branch_sample_type=9 | HW_INDEX)
    with pytest.raises(ValueError, match="hardware index"):
        PerfDataWriter(tmp_path / "a", [EVENT, indexed])
    with (
        PerfDataWriter(tmp_path / "a", [EVENT]) as writer,
        pytest.raises(ValueError, match="does not fit"),
    ):
        writer.comm(Comm(1, 1, 0, "x" * 70_000))


@pytest.mark.parametrize(
    ("path", "words"), [("/dev/full", "No space left"), ("/nowhere/perf.data", "No such file")]
)
def test_says_why_it_can_not_write(path: str, words: str) -> None:
    with pytest.raises(OutputError, match=words) as caught:
        PerfDataWriter(Path(path), [EVENT])
    assert caught.value.where == path
    assert caught.value.cure


SOURCE = """
    __attribute__((noinline)) int work(int n) {
      int sum = 0;
      for (int i = 0; i < n; i++)
        if (i % 3) sum += i * 5; else sum ^= i;
      return sum;
    }
    int main(int argc, char **argv) { return work(argc * 1000); }
"""


@dataclass(frozen=True)
class Loop:
    """A program, how its code is mapped, and a backward branch in its function `work`."""

    program: Path
    mapping: Mmap
    branch: int
    target: int


@pytest.fixture(scope="session")
def loop(tool: Tool, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder = tmp_path_factory.mktemp("loop")
    (folder / "loop.c").write_text(SOURCE)
    path = folder / "loop"
    flags = ["-O1", "-g", "-fdebug-info-for-profiling", "-no-pie", "-Wl,--emit-relocs"]
    run(tool("clang-22"), *flags, "-o", path, folder / "loop.c")
    segments = run(tool("llvm-readelf-22"), "-lW", path).stdout
    (code,) = re.findall(r"LOAD +(\w+) (\w+) \w+ (\w+) \w+ R E", segments)
    offset, start, size = (int(number, 16) for number in code)
    mapping = Mmap(10, 10, 2, start & -4096, size + start % 4096, offset & -4096, str(path))
    listing = run(tool("llvm-objdump-22"), "-d", "--disassemble-symbols=work", path).stdout
    branches = re.findall(r"^ +(\w+):.*\tj\w+\t0x(\w+)", listing, re.M)
    pairs = [(int(at, 16), int(target, 16)) for at, target in branches]
    return Loop(path, mapping, *next((a, b) for a, b in pairs if b < a))


def write_loop(loop: Loop, path: Path) -> None:
    with PerfDataWriter(path, [EVENT], FACTS) as writer:
        writer.comm(Comm(10, 10, 1, loop.program.name, is_exec=True))
        writer.mmap(loop.mapping)
        stacks = batch([[(loop.branch, loop.target, 2)] * 16] * 50)
        writer.samples(dataclasses.replace(stacks, pid=np.full(50, 10, np.int32)))


def test_llvm_profgen_reads_it(tool: Tool, run: Run, tmp_path: Path, loop: Loop) -> None:
    write_loop(loop, tmp_path / "perf.data")
    run(
        tool("llvm-profgen-22"), f"--perfdata={tmp_path / 'perf.data'}", f"--binary={loop.program}",
        "--format=text", f"--output={tmp_path / 'out'}",
    )  # fmt: skip
    assert (tmp_path / "out").read_text().startswith("work:")


def test_perf2bolt_reads_it(tool: Tool, run: Run, tmp_path: Path, loop: Loop) -> None:
    write_loop(loop, tmp_path / "perf.data")
    run(tool("perf2bolt-22"), "-p", tmp_path / "perf.data", "-o", tmp_path / "out", loop.program)
    (line,) = (tmp_path / "out").read_text().splitlines()
    assert re.fullmatch(r"1 work \w+ 1 work \w+ 0 800", line)


@pytest.mark.slow
@pytest.mark.parametrize("in_records", [False, True])
def test_a_copy_of_a_recording_is_as_good_to_other_tools(
    corpus: Corpus, tool: Tool, run: Run, tmp_path: Path, in_records: bool
) -> None:
    original = PerfData(corpus("sqlite/sq.perf.data.zst"))
    binary = corpus("sqlite/sq.zst")
    copy = tmp_path / "perf.data"
    ids = original.info.build_ids
    with PerfDataWriter(copy, [EVENT], FACTS) as writer:
        for event in original.space_events():
            if isinstance(event, Mmap) and in_records:
                event = event._replace(build_id=ids.get(event.path))
            writer.event(event)
        for path, build_id in ids.items():
            writer.build_id(path, build_id)
        for stacks in original.batches():
            writer.samples(stacks)
    prof, fdata = tmp_path / "prof", tmp_path / "fdata"
    run(tool("llvm-profgen-22"), f"--perfdata={copy}", f"--binary={binary}", "--format=text",
        f"--output={prof}")  # fmt: skip
    assert prof.read_text() == corpus("sqlite/sq.llvm-profgen-22.prof.zst").read_text()
    run(tool("perf2bolt-22"), "-p", copy, "-o", fdata, binary)
    expected = corpus("sqlite/sq.perf2bolt-22.fdata.zst").read_text()
    assert sorted(fdata.read_text().splitlines()) == sorted(expected.splitlines())
