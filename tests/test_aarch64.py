"""AArch64 from end to end: BRBE's forms in, and what LLVM's tools make of our files.

That the profiles equal llvm-profgen's and perf2bolt's is tested with those of x86-64, in
tests/profiles/llvm/test_correlate.py and tests/profiles/bolt/fdata/test_derive_fdata.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.fixtures import Tool
from builders.outputs import outputs
from builders.recordings import TESTBINS

from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.count import count
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source

Entry = tuple[int, int, int]

NAMES = ("interp.pie", "shapes.pie")
USER = 1 << 30
SYSCALL, ERET, IRQ, SERROR = (
    BRANCH_TYPES.index(n) << 20 for n in ("SYSCALL", "ERET", "IRQ", "SERROR")
)
ABORT = 1 << 3


def files(name: str) -> tuple[Path, Path]:
    return TESTBINS / "recordings" / f"aarch64-{name}.perf.data", TESTBINS / "aarch64" / name


def same(a: BranchCounts, b: BranchCounts) -> bool:
    names = ("from_", "to", "end", "known", "count", "mispredicted")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.parametrize(
    ("name", "source"), [("interp.pie", "interp.c"), ("shapes.pie", "shapes.cpp")]
)
def test_clang_takes_the_profile_without_a_warning(
    name: str, source: str, tool: Tool, tmp_path: Path
) -> None:
    recording, binary = files(name)
    convert(ConvertOptions((recording,), binary, outputs=outputs(llvm=tmp_path / "prof")))
    command = [
        tool("clang-22"), "--target=aarch64-linux-gnu", "-O2", "-g1", "-fdebug-info-for-profiling",
        f"-fprofile-sample-use={tmp_path / 'prof'}", "-Wall", "-S", "-emit-llvm", "-o", "-",
        TESTBINS / "src" / source,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if "file not found" in done.stderr:
        pytest.skip("no headers for AArch64 (make toolchain, as root)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('!"branch_weights"') > 5
    assert '!"ProfileFormat", !"SampleProfile"' in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_bolt_takes_the_fdata(name: str, tool: Tool, tmp_path: Path) -> None:
    recording, binary = files(name)
    convert(ConvertOptions((recording,), binary, outputs=outputs(fdata=tmp_path / "fdata")))
    command = [
        tool("llvm-bolt-22"), binary, "-data", tmp_path / "fdata", "-o", tmp_path / "bolted",
        "-reorder-blocks=ext-tsp",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.search(
        r"(\d+) out of \d+ functions .* have non-empty execution profile", done.stdout
    )
    assert found is not None
    assert int(found[1]) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_text_of_perf_gives_the_same_counts(name: str, tool: Tool, tmp_path: Path) -> None:
    recording, binary = files(name)
    command = [
        tool("perf"), "script", "-i", recording, "--show-mmap-events", "-F",
        "comm,pid,tid,time,event,ip,brstack",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (tmp_path / "script.txt").write_text(done.stdout)
    layout = Program.open(binary).image.layout
    sources = (open_source(recording), open_source(tmp_path / "script.txt"))
    of_data, of_text = (count(source, layout).counts for source in sources)
    assert len(of_data) > 100
    assert same(of_data, of_text)


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(TESTBINS / "aarch64" / "interp.static")


@pytest.fixture(scope="module")
def loop(program: Program) -> tuple[int, int]:
    """A conditional branch that goes back over fall-throughs, and its target."""
    code = program.instructions_for(program.functions.start)
    back = (code.kind == Kind.COND) & code.has_target & (code.target < code.address)
    for at in np.flatnonzero(back).tolist():
        first = int(code.index_of(code.target[at : at + 1])[0])
        if first >= 0 and not (code.kind[first:at] != Kind.OTHER).any():
            return int(code.address[at]), int(code.target[at])
    pytest.fail("the program has no such loop")


def recorded(path: Path, stacks: Sequence[Sequence[Entry]]) -> Path:
    """Stacks as BRBE's driver writes them, without any mappings: the program is static."""
    event = build.Event(branch_sample_type=9 | 1 << 16 | 1 << 18)
    samples = b"".join(build.Sample(tuple(stack)).encode(event) for stack in stacks)
    arch = build.string("aarch64")
    path.write_bytes(build.file_form([event], samples, {6: arch}))
    return path


def content(counts: BranchCounts) -> set[tuple[int, int, int]]:
    return set(zip(*(getattr(counts, n).tolist() for n in ("from_", "to", "end")), strict=True))


@pytest.mark.parametrize(
    ("gap", "lost"),
    [
        # The kernel is prohibited: a system call has no target, its return no source.
        ([(0, "to", ERET), ("from", 0, SYSCALL)], {"exception": 1}),
        ([(0, "to", ERET), ("from", 0, IRQ)], {"exception": 2}),
        ([(0, "to", ERET), ("from", 0, SERROR)], {"exception": 2}),
        # A data abort, as a new type.
        ([(0, "to", ERET), ("from", 0, 15 << 20 | 1 << 26)], {"exception": 2}),
    ],
)  # fmt: skip
def test_the_kernel_breaks_the_chain_of_user_code(
    program: Program,
    loop: tuple[int, int],
    tmp_path: Path,
    gap: list[tuple[object, object, int]],
    lost: dict[str, int],
) -> None:
    source, target = loop
    # A system call is recorded at the instruction behind it, to which it returns.
    middle = target if lost["exception"] == 2 else source + 4
    named = {"from": middle, "to": target, 0: 0}
    entries = [(named[a], named[b], flags | USER | 2) for a, b, flags in gap]  # type: ignore[index]
    stack = [(source, target, USER | 2), *entries, (source, target, USER | 2)]
    found = count(open_source(recorded(tmp_path / "perf.data", [stack])), program.image.layout)
    counts = found.counts
    assert {k.split("/")[1]: n for k, n in counts.tallies.items() if "image/" in k and n} == lost
    runs = counts.runs()
    # After the return ran fall-throughs up to the newest branch.
    assert (target, source) in set(zip(runs.start.tolist(), runs.end.tolist(), strict=True))
    was_edge = lost["exception"] == 1
    assert ((source, 0, 0) in content(counts)) == was_edge


def test_a_failed_transaction_costs_the_line_before_it(
    program: Program, loop: tuple[int, int], tmp_path: Path
) -> None:
    good = (*loop, USER | 2)
    failed = (*loop, USER | 2 | ABORT)
    layout = program.image.layout
    of_good, of_failed = (
        count(open_source(recorded(tmp_path / f"{i}.data", [[entry, good, good]])), layout).counts
        for i, entry in enumerate((good, failed))
    )
    assert of_failed.runs().count.sum() == of_good.runs().count.sum() - 1
    assert of_failed.branches().count.sum() == of_good.branches().count.sum()


def registers(stack: Sequence[Entry], depth: int) -> str:
    """A dump of BRBE's registers: VALID, TYPE (conditional) and EL0 in BRBINF."""
    rows = [(*entry[:2], 3 | 0x08 << 8 | bool(entry[2] & 1) << 5) for entry in stack]
    rows += [(0, 0, 0)] * (depth - len(rows))
    return "".join(
        f"BRBSRC{i}_EL1 {a:#x}\nBRBTGT{i}_EL1 {b:#x}\nBRBINF{i}_EL1 {info:#x}\n"
        for i, (a, b, info) in enumerate(rows)
    )


@pytest.mark.parametrize("depth", [8, 16, 32, 64])
def test_a_register_dump_is_a_recording_of_one_sample(
    program: Program, loop: tuple[int, int], depth: int, tmp_path: Path
) -> None:
    stack = [(*loop, 1 + i % 2) for i in range(depth)]
    dump = tmp_path / "brbe.txt"
    dump.write_text(registers(stack, depth))
    layout = program.image.layout
    of_dump = count(open_source(dump), layout).counts
    of_data = count(open_source(recorded(tmp_path / "perf.data", [stack])), layout).counts
    assert of_dump.branches().count.tolist() == [depth]
    assert of_dump.runs().count.tolist() == [depth - 1]
    assert same(of_dump, of_data)


def test_a_register_dump_gives_fdata(
    program: Program, loop: tuple[int, int], tmp_path: Path
) -> None:
    dump, out = tmp_path / "brbe.txt", tmp_path / "out.fdata"
    dump.write_text(registers([(*loop, 2)] * 8, 8))
    binary = TESTBINS / "aarch64" / "interp.static"
    assert main(["convert", str(dump), "--binary", str(binary), "--fdata", str(out)]) == 0
    assert re.search(r"^1 (\S+) [0-9a-f]+ 1 \1 [0-9a-f]+ 0 8$", out.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "binary", "recorded_on"),
    [
        (registers([(0x1000, 0x2000, 2)], 8), "x86-64/interp.pie", "aarch64"),
        ("MSR_LBR_TOS 0x1\n" + "".join(
            f"MSR_LASTBRANCH_{i}_FROM_IP 0x1000\nMSR_LASTBRANCH_{i}_TO_IP 0x2000\n"
            for i in range(4)
        ), "aarch64/interp.pie", "x86-64"),
    ],
    ids=["brbe", "msr"],
)  # fmt: skip
def test_a_dump_of_another_machine_is_refused(
    text: str, binary: str, recorded_on: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(text)
    assert main(["convert", str(dump), "--binary", str(TESTBINS / binary)]) == 2
    assert f"this was recorded on {recorded_on}" in capsys.readouterr().err
