"""The software LBR as a whole: what programs with known branches leave behind."""

from __future__ import annotations

import math
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import TESTBINS, Compiled, Run, Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap
from lbr2pgo.model.branch_stacks import (
    BRANCH_FILTER_BITS,
    BRANCH_TYPES,
    MISPREDICTED,
    MISSING,
    PREDICTED,
    cycles_of,
    type_of,
)
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.elf.image import Image
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.recorders.stream_recording import branch_sample_type
from lbr2pgo.support.errors import InputError, MissingToolError, OutputError

Record = Callable[..., Any]
Build = Callable[..., Path]
MACHINES = ["x86-64", "aarch64", "riscv64"]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flags", [("-fPIE", "-pie"), ("-static",)], ids=["pie", "static"])
def test_threads_and_those_that_take_their_places(
    machine: str, flags: tuple[str, ...], build: Build, record: Record
) -> None:
    program = build("threads", machine, *flags)
    recording = record(program)
    assert recording.branch(program, "in_thread") == (8 * 99_999, 8)
    assert recording.result.exit_code == 0
    assert recording.result.warnings == ()
    events = space_events(recording)
    started = {e.tid for e in events if isinstance(e, Fork)}
    ended = [e.tid for e in events if isinstance(e, Exit)]
    assert len(started) == 8
    assert started <= set(ended)
    tids = {int(tid) for stacks in recording.stacks() for tid in stacks.tid}
    assert len(tids & started) >= 4


@pytest.mark.parametrize("machine", MACHINES)
def test_signals_lose_and_invent_no_branch(
    machine: str, build: Build, record: Record, capfd: pytest.CaptureFixture[str]
) -> None:
    program = build("signals", machine)
    recording = record(program)
    alarms, faults, calls = map(int, capfd.readouterr().out.split())
    assert alarms > calls + 20
    assert (faults, calls) == (20, 7)
    assert recording.branch(program, "in_main") == (20 * 499_999, 20)
    assert recording.branch(program, "indirect_call") == (20 * 500_000, 0)
    assert recording.branch(program, "plain_return") == (20 * 500_000, 0)
    assert recording.branch(program, "in_handler") == (9 * alarms, alarms)
    exact = recording.exact
    assert exact.uncounted == 0
    broken = [
        stacks.entries[type_of(stacks.flags) == BRANCH_TYPES.index("ERET")]
        for stacks in recording.stacks()
    ]
    assert all((entries[:, 0] == 0).all() for entries in broken)


@pytest.mark.parametrize("machine", MACHINES)
def test_handlers_that_are_left_by_a_jump(machine: str, build: Build, record: Record) -> None:
    program = build("faults", machine)
    recording = record(program)
    assert recording.branch(program, "before_fault") == (200 * 9, 200)
    assert recording.branch(program, "after_fault") == (200 * 99, 200)


@pytest.mark.parametrize("by_script", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_fork_and_exec(
    machine: str, by_script: bool, build: Build, record: Record, tmp_path: Path
) -> None:
    program = build("processes", machine)
    script = tmp_path / "script with, blanks"
    script.write_text(f"#! {program}  word \n")
    script.chmod(0o755)
    recording = record(program, *([script] if by_script else []), period=997)
    assert recording.result.exit_code == 7
    for symbol, count in {
        "in_parent": 10_000, "in_child": 20_000, "after_exec": 30_000, "in_parent_later": 40_000,
    }.items():  # fmt: skip
        assert recording.branch(program, symbol) == (count - 1, 1), symbol
    events = space_events(recording)
    parent = next(e.pid for e in events if isinstance(e, Comm))
    (fork,) = (e for e in events if isinstance(e, Fork))
    assert fork.parent_pid == parent
    assert sum(isinstance(e, Comm) and e.pid == fork.pid and e.is_exec for e in events) == 1
    pids = {int(pid) for stacks in recording.stacks() for pid in stacks.pid}
    assert pids == {parent, fork.pid}


@pytest.mark.parametrize("machine", MACHINES)
def test_libraries_that_come_and_go(machine: str, build: Build, record: Record) -> None:
    program = build("loading", machine)
    flags = ("-shared", "-fPIC")
    first = build("library", machine, *flags, "-DCOUNT=50000", output="liba.so")
    second = build("library", machine, *flags, "-DCOUNT=60000", output="libb.so")
    recording = record(program, first, second, first)
    assert recording.branch(first, "in_library") == (2 * 49_999, 2)
    assert recording.branch(second, "in_library") == (59_999, 1)
    exact = recording.exact
    made = exact.from_image == exact.images.index("//anon")
    assert exact.count[made].tolist() == [1000]
    mapped = [e.path for e in space_events(recording) if isinstance(e, Mmap)]
    assert mapped.count(str(first)) == 2
    assert mapped[-1] == "//anon"


@pytest.mark.parametrize("machine", MACHINES)
def test_two_files_at_one_address(machine: str, build: Build, record: Record) -> None:
    program = build("remap", machine)
    flags = ("-shared", "-fPIC")
    first = build("library", machine, *flags, "-DCOUNT=50000", output="liba.so")
    second = build("library", machine, *flags, "-DCOUNT=60000", output="libb.so")
    offset = symbol_offset(first, "library_work")
    assert offset == symbol_offset(second, "library_work")
    recording = record(program, first, second, f"{offset:x}")
    assert recording.branch(first, "in_library") == (49_999, 1)
    assert recording.branch(second, "in_library") == (59_999, 1)
    starts = [e.start for e in space_events(recording) if isinstance(e, Mmap)]
    assert starts.count(0x30000000) == 2


def test_x86_corners(build: Build, record: Record) -> None:
    program = build("corners", "x86-64")
    recording = record(program)
    taken_and_not = {
        "repeated": (0, 0),
        "after_repeated": (999, 1),
        "to_itself": (999, 1),
        "to_next": (1000, 0),
        "call_next": (1000, 0),
        "short_counter": (1, 0),
        "long_block": (999, 1),
        "bnd_return": (1000, 0),
    }
    for symbol, counts in taken_and_not.items():
        assert recording.branch(program, symbol) == counts, symbol
    # 1,000 blocks of 2,001 instructions, 65,536,000 repetitions that are 1,000 instructions
    assert 2_000_000 < recording.result.totals.instructions < 2_300_000


@pytest.mark.parametrize("machine", MACHINES)
def test_a_guest_that_closes_every_file_and_lies_about_pointers(
    machine: str, build: Build, record: Record
) -> None:
    program = build("rude", machine)
    recording = record(program, period=499)
    for symbol in ("after_close", "after_dup", "after_close_range", "after_wrong_pointers"):
        assert recording.branch(program, symbol) == (9_999, 1), symbol
    taken = recording.result.totals.taken
    assert abs(recording.result.samples - taken / 499) < 10


def test_a_crash_keeps_what_was_recorded(build: Build, record: Record) -> None:
    program = build("dying", "x86-64")
    recording = record(program)
    assert recording.result.exit_code == 128 + signal.SIGSEGV
    assert recording.branch(program, "before_end") == (199_999, 1)
    assert sum(map(len, recording.stacks())) == recording.result.samples > 190


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_kill_keeps_what_was_recorded(number: int, build: Build, tmp_path: Path) -> None:
    """The guest is killed, or the recorder is told to stop, or both are from the terminal."""
    program = build("dying", "x86-64")
    words = ["--emulate", "-c", "1009", "--exact", tmp_path / "exact", "-o", tmp_path / "perf.data"]
    recorder = subprocess.Popen(
        [sys.executable, "-m", "lbr2pgo", "record", *words, "--", program, "loop"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == "ready\n"
    (guest,) = children_of(recorder.pid)
    victim = {signal.SIGKILL: guest, signal.SIGTERM: recorder.pid, signal.SIGINT: -recorder.pid}
    os.kill(victim[number], number)
    assert recorder.wait(timeout=60) == 128 + number
    from lbr2pgo.model.exact_counts import ExactCounts

    assert ExactCounts.load(tmp_path / "exact").totals.taken > 200_000
    assert (tmp_path / "perf.data").stat().st_size > 100_000
    assert not list(tmp_path.glob(".lbr2pgo*"))


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


@pytest.mark.parametrize("depth", [8, 16, 32, 64])
def test_depth(depth: int, record: Record) -> None:
    recording = record(testbin("x86-64/interp.static"), 1, depth=depth)
    (stacks,) = recording.stacks()
    assert set(np.diff(stacks.offsets)) == {depth}


@pytest.mark.parametrize("machine", MACHINES)
def test_between_two_entries_runs_a_fall_through(
    machine: str, build: Build, record: Record
) -> None:
    """Every entry is a branch of the exact counts, and none of them was passed over."""
    program = build(TESTBINS / "src" / "interp", machine, "-static", output="interp.static")
    recording = record(program, 1, period=101)
    exact = recording.exact
    image = exact.from_image == exact.find_image(None, "interp.static")
    known = {
        (int(f), int(t))
        for f, t in zip(
            exact.from_[image & exact.taken], exact.to[image & exact.taken], strict=True
        )
    }
    always_taken = np.unique(exact.from_[image & exact.taken & (exact.kind != 1)])
    for stacks in recording.stacks():
        whole = (stacks.from_ != 0) & (stacks.to != 0)
        assert set(map(tuple, stacks.entries[whole][:, :2].tolist())) <= known
        sample = np.repeat(np.arange(len(stacks)), np.diff(stacks.offsets))
        pairs = (sample[1:] == sample[:-1]) & (stacks.from_[:-1] != 0) & (stacks.to[1:] != 0)
        starts, ends = stacks.to[1:][pairs], stacks.from_[:-1][pairs]
        assert len(starts) > 10_000
        assert (starts <= ends).all()
        passed = np.searchsorted(always_taken, ends) - np.searchsorted(always_taken, starts)
        assert (passed == 0).all()


def test_the_seed_decides_the_samples(record: Record) -> None:
    def entries(seed: int) -> list[list[int]]:
        stacks = record(testbin("x86-64/interp.static"), 1, seed=seed).stacks()
        return [row for batch in stacks for row in batch.entries.tolist()]

    first = entries(1)
    assert entries(1) == first
    assert entries(2) != first


def test_neither_the_environment_nor_the_path_decides_the_samples(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they cost the dynamic loader is over when the program's first period begins."""

    def last_samples(program: Path) -> list[int]:
        ips = [ip for batch in record(program, 1).stacks() for ip in batch.ip.tolist()]
        assert len(ips) > 300
        return ips[-300:]

    long = tmp_path / "a-directory-with-a-rather-long-name"
    long.mkdir()
    shutil.copy(testbin("x86-64/interp.pie"), long)
    before = last_samples(testbin("x86-64/interp.pie"))
    monkeypatch.setenv("PADDING", "x" * 5000)
    assert last_samples(long / "interp.pie") == before


def test_periods_jitter_around_their_mean(record: Record) -> None:
    recording = record(testbin("x86-64/interp.static"), 10, period=997)
    expected = recording.result.totals.taken / 997
    # Over 12 seeds it was 0.002 at most.
    assert abs(recording.result.samples / expected - 1) < 0.01


@pytest.mark.parametrize(
    ("filters", "kinds"),
    [
        ((), {"COND", "UNCOND", "IND", "CALL", "RET"}),
        (("any", "u"), {"COND", "UNCOND", "IND", "CALL", "RET"}),
        (("cond",), {"COND"}),
        (("any_call",), {"CALL", "IND_CALL"}),
        (("call",), {"CALL"}),
        (("any_ret",), {"RET"}),
        (("ind_jmp",), {"IND"}),
        (("ind_call", "cond", "save_type"), {"IND_CALL", "COND"}),
        (("in_tx",), set()),
    ],
)
def test_filters(filters: tuple[str, ...], kinds: set[str], record: Record) -> None:
    recording = record(testbin("x86-64/shapes.static"), 2, filters=filters)
    seen = {
        BRANCH_TYPES[kind]
        for stacks in recording.stacks()
        for kind in np.unique(type_of(stacks.flags))
    }
    assert kinds <= seen
    assert seen <= kinds | ({"IND_CALL"} if "COND" in kinds and len(kinds) > 2 else set())
    expected = recording.result.totals.taken / 1009
    # Over 12 seeds it was 3 of 577 samples at most.
    assert abs(recording.result.samples - expected) < 0.05 * expected


def test_call_stack_mode(record: Record) -> None:
    recording = record(testbin("x86-64/interp.static"), 3, call_stack=True, depth=8, period=101)
    depths = [int(depth) for stacks in recording.stacks() for depth in np.diff(stacks.offsets)]
    assert len(set(depths)) > 4
    assert max(depths) == 8
    for stacks in recording.stacks():
        assert {BRANCH_TYPES[k] for k in np.unique(type_of(stacks.flags))} <= {"CALL", "IND_CALL"}
        assert not (stacks.flags & np.uint64(MISPREDICTED | PREDICTED)).any()


@pytest.mark.parametrize("cycles", [True, False])
def test_cycles(cycles: bool, record: Record) -> None:
    recording = record(testbin("x86-64/interp.static"), 1, cycles=cycles)
    counted = np.array(
        [cycles_of(f) for stacks in recording.stacks() for f in stacks.flags.tolist()]
    )
    assert (counted != MISSING).all() if cycles else (counted == MISSING).all()
    if cycles:
        assert 1 < counted.mean() < 20


def test_aarch64_system_calls_are_halves_as_brbe_has_them(record: Record, build: Build) -> None:
    program = build("threads", "aarch64", "-static")
    entries = all_entries(record(program, period=53))
    assert (entries[:, :2] != 0).all()  # those of the user alone: a driver drops the others
    entries = all_entries(record(program, period=53, filters=("any", "u", "k")))
    kinds = type_of(entries[:, 2])
    calls = entries[kinds == BRANCH_TYPES.index("SYSCALL")]
    returns = entries[kinds == BRANCH_TYPES.index("ERET")]
    assert len(calls) > 0
    assert len(returns) > 0
    assert (calls[:, 1] == 0).all()
    assert (calls[:, 0] != 0).all()
    assert (returns[:, 0] == 0).all()
    assert (returns[:, 1] != 0).all()


def all_entries(recording: Any) -> np.ndarray:
    return np.concatenate([stacks.entries for stacks in recording.stacks()])


def test_perf_reads_it(record: Record, tool: Tool, run: Run) -> None:
    perf = tool("perf")
    recording = record(testbin("x86-64/interp.pie"), 1)
    header = run(perf, "report", "--header-only", "-i", recording.path).stdout
    assert "simulated" in header
    assert "contains samples with branch stack" in header
    assert "cmdline : lbr2pgo record" in header
    script = run(perf, "script", "-i", recording.path, "-F", "ip,brstack").stdout.splitlines()
    assert len(script) == recording.result.samples
    assert "/COND" in script[-1]
    build_ids = run(perf, "buildid-list", "-i", recording.path).stdout
    assert "interp.pie" in build_ids
    assert "libc.so.6" in build_ids
    report = run(perf, "report", "-i", recording.path, "--stdio").stdout
    assert "compile_expression" in report


def test_llvm_and_bolt_read_it(
    record: Record,
    tool: Tool,
    run: Run,
    tmp_path: Path,
) -> None:
    program = testbin("x86-64/shapes.pie")
    tool("perf")
    recording = record(program, 20)
    profgen, perf2bolt = tool("llvm-profgen-22"), tool("perf2bolt-22")
    options = ("--binary", program, "--output", tmp_path / "prof", "--format", "text")
    run(profgen, "--perfdata", recording.path, *options)
    assert "sort_items" in (tmp_path / "prof").read_text()
    done = run(perf2bolt, "-p", recording.path, "-o", tmp_path / "fdata", program)
    assert "mismatching disassembled function contents: 0" in done.stdout + done.stderr
    assert len((tmp_path / "fdata").read_text().splitlines()) > 100


def test_predictions_are_plausible(record: Record) -> None:
    totals = record(testbin("x86-64/interp.static"), 10).result.totals
    assert 0.001 < totals.mispredicted / (totals.taken + totals.not_taken) < 0.2


def test_a_full_disk(tmp_path: Path, record: Record) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", small], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    try:
        recording = record(testbin("x86-64/interp.static"), 100, output=small / "perf.data")
        result = recording.result
        assert result.exit_code == 0
        assert any("No space left" in warning for warning in result.warnings)
        assert 0 < result.samples < result.totals.taken / 1009 / 2
        assert (small / "perf.data").exists()
        assert not list(small.glob(".lbr2pgo*"))
        fill(small / "filler")
        with pytest.raises(OutputError, match="no room"):
            record(testbin("x86-64/interp.static"), 1, output=small / "perf.data")
    finally:
        subprocess.run(["umount", small], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def test_where_nothing_can_be_written(record: Record, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        record("true", output=tmp_path / "nowhere" / "perf.data")


def test_exact_counts_that_can_not_be_written(record: Record, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        record("touch", tmp_path / "ran", exact=tmp_path / "nowhere" / "exact")
    assert not list(tmp_path.iterdir())


def test_a_directory_is_no_output(record: Record, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="directory"):
        record("true", output=tmp_path)


def test_a_device_is_written_not_replaced(record: Record) -> None:
    assert record("true", output=Path("/dev/null")).result.exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_and_a_mode_is_kept(record: Record, tmp_path: Path) -> None:
    old, link = tmp_path / "old", tmp_path / "link"
    old.write_bytes(b"")
    old.chmod(0o640)
    link.symlink_to(old)
    record("true", output=link)
    assert link.is_symlink()
    assert old.read_bytes().startswith(b"PERFILE2")
    assert old.stat().st_mode & 0o777 == 0o640


def test_an_illegal_instruction_is_explained(record: Record, build: Build) -> None:
    (warning,) = record(build("illegal")).result.warnings
    assert "illegal instruction" in warning


SUMS = """
__attribute__((noinline)) int sum(int *a, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += a[i] * 3;
  return s;
}
void _start(void) {
  static int x[64];
  int s = 0;
  for (int i = 0; i < 2000; i++) x[i & 63] = i, s += sum(x, 64);
  register long a0 __asm__("a0") = s & 0, a7 __asm__("a7") = 93;
  __asm__ volatile("ecall" :: "r"(a0), "r"(a7));
}
"""


def test_vector_code_without_a_c_library_or_unwind_tables_has_contexts(
    record: Record, compiled: Compiled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QEMU_CPU", "rv64,v=true")
    program = compiled(
        "clang-22", SUMS, "--target=riscv64-linux-gnu", "-march=rv64gcv", "-O2", "-g", "-static",
        "-nostdlib", "-fuse-ld=lld", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
    )  # fmt: skip
    assert ".eh_frame" not in {section.name for section in Image.open(program).sections}
    recording = record(program, period=53, call_graph=True)
    target = tmp_path / "profile"
    outputs = (output("llvm", target, contexts="full"),)
    convert(ConvertOptions((recording.path,), program, outputs=outputs))
    assert "[_start:3 @ sum]" in target.read_text()


def test_an_emulator_without_plugins(tmp_path: Path, build: Build, tool: Tool) -> None:
    tool("cc")
    program = build("threads")
    fake = tmp_path / "bin" / "qemu-x86_64"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'unknown option plugin' >&2\nexit 1\n")
    fake.chmod(0o755)
    environment = dict(os.environ) | {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    options = RecordOptions(
        output=tmp_path / "perf.data", command=(str(program),), cycles=True, emulate=True
    )
    with pytest.raises(MissingToolError, match="did not run the program with the plugin"):
        record_software(options, environment)
    assert not (tmp_path / "perf.data").exists()


def test_a_real_tool_chain(record: Record, tmp_path: Path) -> None:
    """gcc runs the compiler proper, the assembler and the linker as children."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    recording = record(gcc, tmp_path / "a.c", "-o", tmp_path / "a.out")
    assert recording.result.exit_code == 0
    assert subprocess.run([tmp_path / "a.out"], check=False).returncode == 0
    exact = recording.exact
    names = {Path(image).name for image in exact.images}
    assert any(name.startswith("cc1") for name in names)
    assert any("ld" in name for name in names)
    assert exact.uncounted == 0


@pytest.mark.parametrize("name", ["x86-64/interp.static", "x86-64/shapes.static"])
def test_slow_down(name: str, record: Record) -> None:
    """The recorder's own work included, at the period at which it is promised."""
    program = testbin(name)
    native = emulated = math.inf
    for _ in range(4):  # turn by turn, since a machine's speed changes within minutes
        native = min(native, cpu_seconds(lambda: run_quietly(program)))
        emulated = min(emulated, cpu_seconds(lambda: record(program, period=10007, exact=None)))
    assert emulated / native < 30


def run_quietly(program: Path) -> None:
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(call: Callable[[], object]) -> float:
    """Processor time of a call and of its child processes, which other load hardly changes."""

    def spent() -> float:
        used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in used)

    start = spent()
    call()
    return spent() - start


@pytest.mark.parametrize(
    ("filters", "call_stack", "cycles", "bits"),
    [
        ((), False, True, {"user", "any", "save_type", "priv"}),
        (("cond", "u"), False, False, {"user", "cond", "save_type", "priv", "no_cycles"}),
        ((), True, True, {"user", "call_stack", "save_type", "priv", "no_flags", "no_cycles"}),
    ],
)
def test_the_file_says_what_was_kept(
    filters: tuple[str, ...], call_stack: bool, cycles: bool, bits: set[str]
) -> None:
    options = RecordOptions(
        output=Path("x"), command=("true",), filters=filters, call_stack=call_stack, cycles=cycles
    )
    described = sum(1 << BRANCH_FILTER_BITS[name] for name in bits)
    assert branch_sample_type(options) == described
    assert branch_sample_type(options, kernel=True) == described | 2


def test_no_such_program(record: Record) -> None:
    with pytest.raises(InputError):
        record("no-such-program-anywhere")


def testbin(name: str) -> Path:
    path = TESTBINS / name
    assert path.exists()
    return path


testbin.__test__ = False  # type: ignore[attr-defined]


def space_events(recording: Any) -> list[object]:
    from lbr2pgo.sources.perf_data.reader import FORMAT

    return list(FORMAT.open(recording.path).space_events())  # type: ignore[union-attr]


def symbol_offset(library: Path, symbol: str) -> int:
    """File offset of a symbol: these libraries have code at the same offset as address."""
    listing = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    return next(
        int(line.split()[0], 16) for line in listing.splitlines() if line.endswith(f" {symbol}")
    )


def test_an_older_recording_is_kept_as_perf_keeps_it(record: Record, tmp_path: Path) -> None:
    output = tmp_path / "perf.data"
    output.write_bytes(b"older")
    output.chmod(0o640)
    record(testbin("x86-64/interp.static"), 1, output=output)
    assert output.read_bytes()[:8] == b"PERFILE2"
    assert (tmp_path / "perf.data.old").read_bytes() == b"older"
    assert stat.S_IMODE(output.stat().st_mode) == 0o640


def test_an_empty_file_is_not_kept(record: Record, tmp_path: Path) -> None:
    output = tmp_path / "perf.data"
    output.touch()
    record(testbin("x86-64/interp.static"), 1, output=output)
    assert not (tmp_path / "perf.data.old").exists()


def test_nothing_replaces_a_recording_where_nothing_was_recorded(
    record: Record, tmp_path: Path
) -> None:
    output = tmp_path / "perf.data"
    output.write_bytes(b"older")
    done = record(testbin("x86-64/interp.static"), 1, output=output, period=1 << 40)
    assert done.result.samples == 0
    assert "Nothing was recorded" in done.result.warnings[-1]
    assert output.read_bytes() == b"older"
    assert not (tmp_path / "perf.data.old").exists()


@pytest.mark.parametrize("field", ["output", "exact"])
def test_a_recording_is_not_written_over_the_program(
    field: str, record: Record, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    shutil.copy(testbin("x86-64/interp.static"), program)
    before = program.read_bytes()
    with pytest.raises(OutputError, match="a program that runs"):
        record(program, 1, **{field: program})
    assert program.read_bytes() == before


def test_exact_counts_are_not_written_over_the_recording(record: Record, tmp_path: Path) -> None:
    one = tmp_path / "one"
    with pytest.raises(OutputError, match="another output"):
        record(testbin("x86-64/interp.static"), 1, output=one, exact=one)
