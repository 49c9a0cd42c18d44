from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.bolt import Trace, counts_of
from builders.fixtures import Tool
from builders.recordings import STATIC

from lbr2pgo.dumping import counts
from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replay import ReplayOptions, replay

ASSEMBLY = """
.globl _start, other
.type _start, @function
.type other, @function
.text
_start:  nop; nop
call_:   call other
behind:  test %eax, %eax
cond:    jne _start
jump:    jmp _start
after:   nop
indirect: jmp *%rax
landing: nop
         .byte 0x06
gap_end: nop
trap:    ud2
.size _start, . - _start
other:   nop
ret_:    ret
.size other, . - other
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Program:
    folder = tmp_path_factory.mktemp("verdicts")
    (folder / "a.s").write_text(ASSEMBLY)
    command = [tool("gcc"), "-nostdlib", "-static", "a.s", "-o", "a"]
    subprocess.run(command, cwd=folder, check=True)
    return Program.open(folder / "a")


Text = Callable[..., list[str]]


@pytest.fixture
def text(program: Program) -> Text:
    """Lines for traces between symbols of the program, `None` for outside or unknown."""

    def address(name: str | int | None) -> int | None:
        return program.address_of(name) if isinstance(name, str) else name

    def dump(
        *traces: tuple[str | int | None, ...], strict: bool = False, function: str = ""
    ) -> list[str]:
        rows: list[Trace] = [(*map(address, trace), 3) for trace in traces]  # type: ignore[misc]
        options = ReplayOptions(strict=strict)
        chosen = find_function(program, function) if function else None
        flow = replay(counts_of(rows), program, options)
        return list(counts.lines(flow, program, options, chosen))[1:]

    return dump


def test_a_trace_with_its_places(text: Text, program: Program) -> None:
    start, cond = (f"{program.address_of(name):#x}" for name in ("_start", "cond"))
    places = f"{cond} <_start+0x9> -> {start} <_start>"
    assert text(("cond", "_start", None)) == [f"3 (0): {places}, end unknown"]
    assert text((None, "_start", None)) == [f"3 (0): outside -> {start} <_start>, end unknown"]
    assert text(("cond", None, None)) == [f"3 (0): {cond} <_start+0x9> -> outside, end unknown"]
    first, verdict = text(("jump", "behind", "cond"))
    assert first.endswith(f", on to {cond} <_start+0x9>")
    assert verdict == "    valid"


@pytest.mark.parametrize(
    ("start", "end", "verdict"),
    [
        ("behind", "jump", "valid"),
        ("behind", "behind", "valid"),
        ("_start", "cond", "valid, but passes the call at <call_>, UNLOGGED"),
        ("after", "landing", "valid, but passes the indirect jump at <indirect>, UNLOGGED"),
        ("cond", "behind", "rejected: it ends before it starts"),
        ("behind", "after", "rejected: execution does not run past the jump at <jump>"),
        ("_start", "after", "rejected: execution does not run past the jump at <jump>"),
        ("landing", "gap_end", "rejected: behind the instruction at <landing> NO CODE"),
        ("trap", "other", "rejected: execution does not run past the trap at <trap>"),
    ],
)  # fmt: skip
def test_verdicts_name_the_instruction_to_blame(
    text: Text, program: Program, start: str, end: str, verdict: str
) -> None:
    names = {
        name: program.address_of(name) for name in ("call_", "indirect", "jump", "landing", "trap")
    }
    verdict = verdict.replace("UNLOGGED", "which was not logged")
    verdict = verdict.replace("NO CODE", "stand bytes that are no code")
    base = program.address_of("_start")
    for name, address in names.items():
        assert address is not None
        assert base is not None
        verdict = verdict.replace(f"<{name}>", f"{address:#x} <_start+{address - base:#x}>")
    assert text(("cond", start, end))[1] == f"    {verdict}"


def test_strictness_rejects_what_passes_a_call(text: Text) -> None:
    (_, verdict) = text(("cond", "_start", "cond"), strict=True)
    assert verdict.startswith("    rejected: execution does not run past the call at ")


def test_ends_that_are_no_instructions(text: Text, program: Program) -> None:
    behind = program.address_of("behind")
    assert behind is not None
    where = f"inside the instruction at {behind:#x} <_start+0x7>"
    assert text(("jump", behind + 1, "cond"))[1] == f"    rejected: starts {where}"
    assert text(("jump", "behind", behind + 1))[1] == f"    rejected: ends {where}"
    both = text(("jump", behind + 1, behind + 1))[1]
    assert both == f"    rejected: starts {where} and ends {where}"
    (_, nowhere) = text(("jump", 16, 20))
    assert "starts where there is no instruction" in nowhere


def test_only_what_touches_a_function(text: Text) -> None:
    traces = [
        ("cond", "_start", "call_"),
        ("call_", "other", "ret_"),
        ("ret_", "behind", "cond"),
    ]
    assert len(text(*traces)) == 6
    assert len(text(*traces, function="other")) == 4
    assert len(text(*traces, function="_start")) == 6
    assert text(traces[0], function="other") == []


def test_a_bare_fall_through(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("F 22a8c0 22a8da 7\nf 22a8c0 22a8da 5\n")
    found = read_and_replay(Inputs((tmp_path / "t",), STATIC))
    text = list(counts.lines(found.flow, found.program, ReplayOptions()))[1:]
    assert text[0].startswith("7 (0): unknown -> 0x22a8c0 <main+0x1d0>, on to ")
    assert text[2].startswith("5 (0): outside -> 0x22a8c0 ")


@pytest.mark.parametrize(("row", "number"), [("4 0", "4 (0, 4 not known)"), ("4 1", "4 (1)")])
def test_predictions_that_are_not_known_are_told(tmp_path: Path, row: str, number: str) -> None:
    """A file without any misprediction knows none."""
    (tmp_path / "t").write_text(f"B 22a8da 22a8c0 {row}\n")
    found = read_and_replay(Inputs((tmp_path / "t",), STATIC))
    text = list(counts.lines(found.flow, found.program, ReplayOptions()))[1:]
    assert text[0].startswith(f"{number}: ")
