"""Call chains of the software LBR, through whatever leaves calls otherwise than by a return."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.context_profiles import FULL, without_was_inlined
from builders.fixtures import Tool
from builders.hybrid import text_of
from builders.llvm_profiles import converted, profgen_of_contexts
from builders.recordings import TESTBINS

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.sources.base import SourceInfo
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_script.reader import PerfScript
from lbr2pgo.support.addresses import image_addresses

Run = Callable[..., Any]
CALLS = Path(__file__).parent / "programs" / "calls.c"
LIMIT = 127
"""Frames that Linux, perf and the software LBR keep at most."""


def chains(batches: list[BranchStacks]) -> Iterator[list[int]]:
    for batch in batches:
        assert batch.chains is not None
        for start, end in pairwise(batch.chains.offsets.tolist()):
            yield batch.chains.frames[start:end].tolist()


class Named:
    """The functions of a static program by the run-time addresses of a chain, inwards to main."""

    def __init__(self, path: Path) -> None:
        self.regions = Program.open(path).regions
        self.names = list(self.regions.name)

    def chain(self, frames: list[int]) -> tuple[str, ...]:
        places = [frames[0], *(frame - 1 for frame in frames[1:])]
        found = self.regions.containing(image_addresses(np.array(places, np.uint64)))
        names = [self.names[row] if row >= 0 else "?" for row in found.tolist()]
        names = names[: names.index("main") + 1] if "main" in names else names
        return tuple(names[::-1])


def work_of(path: Path, batches: list[BranchStacks]) -> dict[str, set[tuple[str, ...]]]:
    """Who called the functions that run for long: chains from main, or the outermost, inwards."""
    named = Named(path)
    found: dict[str, set[tuple[str, ...]]] = {}
    for frames in chains(batches):
        *callers, function = named.chain(frames)
        if function.startswith("work_") and "dive" not in callers:
            found.setdefault(function.removeprefix("work_"), set()).add(tuple(callers))
    return found


def signal_frames(chain: tuple[str, ...]) -> tuple[str, ...]:
    """Without the C library's functions between a signal and the function that it came to."""
    return (*chain[: chain.index("raise")], *chain[-1:]) if "raise" in chain else chain


@pytest.mark.parametrize("machine", ["x86-64", "aarch64", "riscv64"])
def test_calls_are_known_after_jumps_signals_and_switches_of_stacks(
    machine: str, build: Callable[..., Path], record: Callable[..., Any]
) -> None:
    path = build("calls", machine, "-O2", "-static")
    recording = record(path, 20, period=53, call_graph=True)
    assert recording.result.warnings == ()
    found = work_of(path, recording.stacks())
    in_handler = {signal_frames(chain) for chain in found.pop("in_handler")}
    assert in_handler == {("main", "signals", "handler")}
    assert found == {
        "plain": {("main", "plain")},
        "before_jump": {("main", "jumps", *["leap"] * 6)},
        "after_jump": {("main", "jumps")},
        "after_handler": {("main", "signals")},
        "after_signal_jump": {("main", "signals")},
        "in_coroutine": {("__start_context", "body") if machine == "riscv64" else ("body",)},
        "beside_coroutine": {("main", "coroutines")},
        "tail": {("main", "tails")},
        "after_deep": {("main", "dives")},
        "pointed": {("main", "points")},
    }


@pytest.mark.parametrize("machine", ["x86-64", "aarch64", "riscv64"])
def test_what_else_is_asked_for_changes_no_sample(
    machine: str, build: Callable[..., Path], record: Callable[..., Any]
) -> None:
    """Last branches and chains alone are recorded by code of their own, which is shorter."""
    program = build("calls", machine, "-static")
    taken = []
    for exact in ({"exact": None}, {}):
        recording = record(program, period=53, depth=16, call_graph=True, cycles=False, **exact)
        batches = recording.stacks()
        entries = [batch.entries.tolist() for batch in batches]
        taken.append((recording.result.totals, entries, list(chains(batches))))
    assert taken[0] == taken[1]
    assert len(taken[0][2]) > 1000


@pytest.mark.parametrize("machine", ["x86-64", "aarch64", "riscv64"])
def test_each_thread_has_calls_of_its_own(
    machine: str, build: Callable[..., Path], record: Callable[..., Any]
) -> None:
    path = build("threads", machine, "-static")
    named = Named(path)
    found = Counter(map(named.chain, chains(record(path, call_graph=True).stacks())))
    of_work = {chain: count for chain, count in found.items() if chain[-1] == "work"}
    assert {chain[-3:] for chain in of_work} == {("start_thread", "start", "work")}
    assert sum(of_work.values()) > 500


def test_calls_are_known_after_exceptions_and_switches_by_hand(
    tmp_path: Path, tool: Tool, record: Callable[..., Any]
) -> None:
    path = tmp_path / "unwinding"
    source = Path(__file__).parent / "programs" / "unwinding.cpp"
    command = [tool("g++"), "-O1", "-static", source, "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    found = work_of(path, record(path, period=53, call_graph=True).stacks())
    (cleaned,) = found.pop("cleaned")  # with the C++ library's functions in between or without
    assert cleaned[:4] == ("main", "catches_again", "catches", "cleans")
    assert found == {
        "thrown": {("main", "catches_again", "catches", "cleans", *["throws"] * 5)},
        "caught": {("main", "catches_again", "catches")},
        "rethrown": {("main", "catches_again")},
        "switched": {("fiber",)},
        "back": {("main", "switches")},
    }


def callers_of(frames: list[int], table: InstructionTable) -> list[int]:
    """Rows of the calls that stand before the return addresses of a chain."""
    before = image_addresses(np.array(frames[1:], np.uint64) - np.uint64(1))
    return table.covering(before).tolist()


def test_they_are_kept_where_nobody_asks_and_profiles_stay_as_they_are(
    tmp_path: Path, tool: Tool, run: Run, record: Callable[..., Any]
) -> None:
    program = tmp_path / "calls"
    command = [tool("gcc"), "-O1", "-g", CALLS, "-o", program, "-pthread", "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    made: dict[bool | None, dict[str, bytes]] = {}
    for asked in (None, False, True):
        recording = record(program, 20, call_graph=asked).path
        has_chains = [batch.chains is not None for batch in PerfData(recording).batches()]
        assert has_chains == [asked is not False] * len(has_chains)
        names = ("llvm", "fdata", "afdo", "preaggregated", "unsymbolized", "counts")
        paths = {name: tmp_path / f"{asked}.{name}" for name in names}
        words = [word for name in names for word in (f"--{name}", paths[name])]
        run(sys.executable, "-m", "lbr2pgo", "convert", recording, "--binary", program, *words)
        nested = tmp_path / "nested.prof"
        if asked is not False:
            run(sys.executable, "-m", "lbr2pgo", "convert", recording, "--binary", program,
                "--llvm", nested, "--contexts", "nested")  # fmt: skip
        made[asked] = {name: path.read_bytes() for name, path in paths.items()}
        made[asked]["nested"] = nested.read_bytes()
    flat, asked_for = made[None], made[True]
    assert {**flat, "nested": b""} == {**made[False], "nested": b""}
    assert asked_for["llvm"] == asked_for["nested"] == flat["nested"] != flat["llvm"]


@pytest.mark.parametrize(
    ("details", "wants"),
    [
        ({"cpuid": "GenuineIntel-6-85-4", "command": "perf record -b -g"}, True),
        ({"cpuid": "simulated", "command": "lbr2pgo record --emulate -- ./a"}, False),
        ({"cpuid": "simulated", "command": "lbr2pgo record --emulate --call-graph -- ./a"}, True),
        ({"cpuid": "simulated", "command": "lbr2pgo record -- ./a --call-graph -- b"}, False),
        ({}, True),
    ],
)
def test_who_asked_for_them_is_told_by_the_command(details: dict[str, str], wants: bool) -> None:
    info = SourceInfo("perf.data", "perf.data", has_call_chains=True, details=details)
    assert info.wants_contexts == wants
    assert not replace(info, has_call_chains=False).wants_contexts


@pytest.mark.parametrize("name", ["x86-64/interp.static", "aarch64/interp.static"])
def test_each_frame_lies_in_what_the_next_one_calls(name: str, record: Callable[..., Any]) -> None:
    """Where the call is direct, and the function that was called has not jumped elsewhere."""
    path = TESTBINS / name
    program = Program.open(path)
    table = program.instructions_for(program.regions.start)
    regions, checked, jumped = program.regions, 0, Counter[bool]()
    for frames in chains(record(path, 1, period=1009, call_graph=True).stacks()):
        calls = callers_of(frames, table)
        for inner, call in zip(frames, calls, strict=False):
            assert table.kind[call] in (Kind.CALL, Kind.INDIRECT_CALL)
            if table.has_target[call]:
                both = regions.containing(
                    image_addresses(np.array([inner, table.target[call]], np.uint64))
                )
                jumped[bool(regions.parent[both[0]] != regions.parent[both[1]])] += 1
                checked += 1
    assert checked > 1000
    assert jumped[True] < checked / 50


def offsets_in_files(frames: list[int], maps: list[Mmap]) -> list[int]:
    """What some versions of perf print of a call chain (tools/perf/util/evsel_fprintf.c, v6.1)."""
    found = []
    for frame in frames:
        inside = [m for m in maps if m.start <= frame < m.start + m.length]
        found.append(frame - inside[-1].start + inside[-1].file_offset if inside else frame)
    return found


def test_perf_shows_the_chains_that_are_read(
    build: Callable[..., Path], record: Callable[..., Any], tool: Tool, run: Run, tmp_path: Path
) -> None:
    recording = record(build("calls", "x86-64", "-O2", "-static"), 2, period=53, call_graph=True)
    text = tmp_path / "script.txt"
    command = [tool("perf"), "script", "-f", "-i", recording.path, "-F", "ip,brstack"]
    text.write_text(run(*command).stdout)
    ours = list(chains(recording.stacks()))
    theirs = list(chains(list(PerfScript(text).batches())))
    maps = [e for e in PerfData(recording.path).space_events() if isinstance(e, Mmap)]
    assert theirs in (ours, [offsets_in_files(frames, maps) for frames in ours])
    assert max(map(len, ours)) == LIMIT


def test_llvm_profgen_takes_the_chains(
    build: Callable[..., Path], record: Callable[..., Any], tool: Tool, run: Run, tmp_path: Path
) -> None:
    path = build("calls", "x86-64", "-O2", "-g", "-no-pie")
    recording = record(path, 20, period=53, call_graph=True)
    text, profile = tmp_path / "script.txt", tmp_path / "contexts.prof"
    text.write_text(text_of(recording.stacks()))
    run(
        tool("llvm-profgen-22"), f"--perfscript={text}", f"--binary={path}", "--format=text",
        f"--output={profile}", "--gen-cs-nested-profile=0", "--csspgo-preinliner=0",
        "--profile-summary-hot-count=0",
    )  # fmt: skip
    found = re.findall(r"^\[(.*work_.*)\]:(\d+)", profile.read_text(), re.MULTILINE)
    hot = {re.sub(r":[\d.]+", "", context) for context, count in found if int(count) > 10_000}
    assert hot == {
        "main @ plain @ work_plain", "main @ jumps @ leap @ leap @ work_before_jump",
        "main @ jumps @ work_after_jump", "main @ signals @ work_after_handler",
        "main @ signals @ work_after_signal_jump", "handler @ work_in_handler",
        "body @ work_in_coroutine", "main @ coroutines @ work_beside_coroutine",
        "main @ tails @ work_tail", "dive @ dive @ work_deep", "main @ dives @ work_after_deep",
        "main @ points @ work_pointed",
    }  # fmt: skip


FLAGS = {
    "lines": ("-g", "-fdebug-info-for-profiling"),
    "probes": ("-g1", "-fpseudo-probe-for-profiling"),
}
MODES: dict[str, tuple[str, ...]] = {"nested": (), "full": FULL}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FLAGS)
@pytest.mark.parametrize(
    "source",
    [CALLS, TESTBINS / "src" / "interp.c", TESTBINS / "src" / "shapes.cpp"],
    ids=lambda source: source.name,
)
def test_contexts_of_recordings_are_those_of_llvm_profgen(
    source: Path, kind: str, record: Callable[..., Any], tool: Tool, run: Run, tmp_path: Path
) -> None:
    path, text = tmp_path / "program", tmp_path / "hybrid.perfscript"
    compiler = tool("clang++-22" if source.suffix == ".cpp" else "clang-22")
    run(compiler, "-O2", *FLAGS[kind], "-no-pie", "-w", source, "-o", path)
    recording = record(path, 3, period=53, call_graph=True)
    text.write_text(text_of(recording.stacks()))
    for contexts, words in MODES.items():
        ours = converted(tmp_path, recording.path, path, compat=True, contexts=contexts)
        theirs = profgen_of_contexts(tool, tmp_path, text, path, *words)
        lines, wanted = (sorted(without_was_inlined(each).splitlines()) for each in (ours, theirs))
        assert lines == wanted


def test_functions_have_their_size_where_line_tables_shorten_names(
    record: Callable[..., Any], tool: Tool, run: Run, tmp_path: Path
) -> None:
    path, source = tmp_path / "program", TESTBINS / "src" / "interp.c"
    run(tool("clang-22"), "-O2", *FLAGS["probes"], "-no-pie", source, "-o", path)
    recording = record(path, 3, period=53, call_graph=True)
    profile = converted(tmp_path, recording.path, path, contexts="nested")
    outermost = [line for line in profile.splitlines() if not line.startswith(" ")]
    assert any("compile_expression" in line for line in outermost)  # it is too large to be inlined


def test_the_ring_keeps_open_calls_or_branches(make_options: Callable[..., Any]) -> None:
    from lbr2pgo.support.errors import InputError

    with pytest.raises(InputError, match="either the open calls or the last branches"):
        make_options(call_stack=True, call_graph=True)
