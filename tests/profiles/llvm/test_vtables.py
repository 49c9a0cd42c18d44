"""Virtual tables that code loaded from: as often as the program says, and as llvm-profgen counts.

Every access is sampled, so counts are exact.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm.sample_profile import Counts, FunctionSamples
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import OutputError

COMMAND = (
    "clang++-22 -O1 -fuse-ld=lld -fdebug-info-for-profiling -fpseudo-probe-for-profiling -static "
    "-no-pie -fno-rtti -fno-exceptions -nostdlib++ --target="
)
TARGETS = "x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu -mno-relax"
Told = dict[tuple[str, ...], list[Counts]]
"""Of functions, behind their callers, by location."""

ONE, TWO, THREE = "_ZTV3One", "_ZTV3Two", "_ZTV5Three"
CALL, ONES, TWOS = "_Z4callP4Basei", "_Z4onesP4Basei", "_Z4twosP4Basei"
TAIL, BOTH, LOOK = "_Z4tailP4Basei", "_Z4bothP4BaseS0_i", "_Z4lookP4Base"
METHOD = "_Z6methodP4Base"
OF_LOOP: Counts = {ONE: 400, TWO: 200, THREE: 200}
OF_LOOKS: Counts = {ONE: 800, TWO: 400, THREE: 400}
IN_CONTEXT: Told = {
    ("main", CALL): [OF_LOOP],
    ("main", BOTH): [{ONE: 400, TWO: 400}, {THREE: 800}],
    ("main", ONES, CALL): [{ONE: 800}],
    ("main", TWOS, CALL): [{TWO: 800}],
    ("main", TAIL): [{ONE: 400, TWO: 400}],
    ("main", LOOK, METHOD): [OF_LOOKS],
}
"""What main says, by who called."""
CALLS: Counts = {ONE: 1200, TWO: 1000, THREE: 200}
FLAT: Told = {
    (CALL,): [CALLS],
    ("main", BOTH): IN_CONTEXT["main", BOTH],
    (TAIL,): IN_CONTEXT["main", TAIL],
    (LOOK, METHOD): [OF_LOOKS],
}
"""By function, and by what is inlined there."""
NESTED: Told = {
    **IN_CONTEXT,
    **FLAT,
    (ONES, CALL): IN_CONTEXT["main", ONES, CALL],
    (TWOS, CALL): IN_CONTEXT["main", TWOS, CALL],
}
"""Functions that were not inlined stand alone besides."""
ALIKE = {"on": (METHOD, BOTH, TAIL), "off": (METHOD,)}
"""Nested nowhere, as they run alike everywhere; by lines, calls through pointers stay calls."""


def expected_of(contexts: str, probes: str) -> Told:
    if contexts != "nested":
        return {"off": FLAT, "full": IN_CONTEXT}[contexts]
    alike = ALIKE[probes]
    return {
        callers[-1:] if callers[-1] in alike else callers: NESTED[callers] for callers in NESTED
    }


def record(program: Path, output: Path, *arguments: str, period: int = 32, **options: bool) -> Path:
    command = (str(program), *arguments)
    record_software(
        RecordOptions(output=output, command=command, period=period, emulate=True, **options)  # type: ignore[arg-type]
    )
    return output


@pytest.fixture(scope="session")
def recorded(
    built: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[Path, Path]]:
    """`recorded(target, data=True)`: the program, and a recording of it."""
    known: dict[tuple[object, ...], tuple[Path, Path]] = {}

    def find(target: str, **options: bool) -> tuple[Path, Path]:
        key = (target, *options.items())
        if key not in known:
            program = built(COMMAND + target, "virtual_calls.cpp")
            folder = tmp_path_factory.mktemp("recorded")
            known[key] = program, record(program, folder / "perf.data", **options)
        return known[key]

    return find


Recorded = Callable[..., tuple[Path, Path]]


@pytest.fixture
def program(recorded: Recorded) -> Path:
    return recorded(TARGETS[0], data=True)[0]


@pytest.fixture
def recording(recorded: Recorded) -> Path:
    return recorded(TARGETS[0], data=True)[1]


def told(path: Path) -> Told:
    """What a text profile says; calls of one function by the same one are added up."""
    found: dict[tuple[str, ...], FunctionSamples] = {}
    for callers, function in _functions(path):
        if function.vtables:
            found.setdefault(callers, FunctionSamples(function.name)).merge(function)
    return {
        callers: [function.vtables[location] for location in sorted(function.vtables)]
        for callers, function in found.items()
    }


def _functions(path: Path) -> Iterator[tuple[tuple[str, ...], FunctionSamples]]:
    for function in text.read(path).functions.values():
        context = function.context or ()
        callers = tuple(str(frame.function) for frame in context) or (str(function.name),)
        yield from _inner(function, callers)


def _inner(
    function: FunctionSamples, callers: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], FunctionSamples]]:
    yield callers, function
    for _, callee in function.inlined():
        yield from _inner(callee, (*callers, str(callee.name)))


def shown(tool: Tool, profile: Path) -> str:
    command = [tool("llvm-profdata-22"), "show", "--sample", profile]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("probes", ["on", "off"])
@pytest.mark.parametrize("contexts", ["off", "nested", "full"])
def test_counts_are_the_programs_own_and_llvm_keeps_them(
    contexts: str, probes: str, program: Path, recording: Path, tool: Tool, tmp_path: Path
) -> None:
    forms = [
        LlvmOutput(tmp_path / form, form=form, vtables=True, contexts=contexts, probes=probes)  # type: ignore[arg-type]
        for form in ("text", "extbinary")
    ]
    convert(ConvertOptions((recording,), program, outputs=tuple(forms)))
    assert told(tmp_path / "text") == expected_of(contexts, probes)
    merged = tmp_path / "merged"
    command = [tool("llvm-profdata-22"), "merge", "--sample", "--extbinary", "-o", merged]
    subprocess.run([*command, "-extbinary-write-vtable-type-prof", tmp_path / "text"], check=True)
    expected = shown(tool, tmp_path / "text")
    assert shown(tool, tmp_path / "extbinary") == shown(tool, merged) == expected
    names = Counter(word for line in expected.splitlines() for word in line.split())
    assert all(names[f"{name}:{count}"] for name, count in OF_LOOKS.items())


@pytest.mark.parametrize("contexts", ["off", "full"])
@pytest.mark.parametrize("target", TARGETS[1:])
def test_by_probes_it_is_the_same_on_all_machines(
    target: str, contexts: str, recorded: Recorded, tmp_path: Path
) -> None:
    """Even where a pointer is loaded long before the call, and two calls stand in one line."""
    program, recording = recorded(target, data=True)
    output = LlvmOutput(tmp_path / "out", vtables=True, contexts=contexts)  # type: ignore[arg-type]
    convert(ConvertOptions((recording,), program, outputs=(output,)))
    assert told(output.path) == expected_of(contexts, "on")


def test_by_probes_they_are_at_the_probe_of_the_call(
    program: Path, recording: Path, tmp_path: Path
) -> None:
    """Or of the block, in the inlined function that looks into the table."""
    output = LlvmOutput(tmp_path / "out", vtables=True, contexts="off")
    convert(ConvertOptions((recording,), program, outputs=(output,)))
    for callers, function in _functions(output.path):
        for location in function.vtables:
            if callers[-1] == METHOD:
                assert location == (1, 0)
            else:
                assert location in function.call_targets


def test_recordings_add_up(program: Path, tmp_path: Path) -> None:
    """Also where they have other call stacks, or see them in another order."""
    # The one call is in a branch stack, whatever libc does before: these overlap.
    long = record(program, tmp_path / "long.data", period=8, data=True)
    short = record(program, tmp_path / "short.data", "short", period=8, data=True)
    output = LlvmOutput(tmp_path / "out", vtables=True, contexts="full")
    for recordings in ((long, short), (short, long)):
        convert(ConvertOptions(recordings, program, outputs=(output,)))
        assert told(output.path) == {**IN_CONTEXT, ("main", TWOS, CALL): [{TWO: 801}]}


def vtables(program: Path, recording: Path, output: LlvmOutput) -> list[str]:
    convert(ConvertOptions((recording,), program, outputs=(output,)))
    return [line for line in output.path.read_text().splitlines() if "vtables" in line]


def test_by_lines_they_are_those_of_llvm_profgen(
    recorded: Recorded, tool: Tool, tmp_path: Path
) -> None:
    """It takes what perf prints of our recording; branches it wants alone."""
    perf = tool("perf")
    program, recording = recorded(TARGETS[0], data=True, call_graph=False)
    branches, trace = tmp_path / "branches.txt", tmp_path / "accesses.txt"
    alone = record(program, tmp_path / "branches.data", call_graph=False)
    for path, words in (
        (branches, ("-i", alone, "-F", "ip,brstack", "--show-mmap-events")),
        (trace, ("-i", recording, "-D")),
    ):
        with path.open("wb") as sink:
            subprocess.run([perf, "script", *words], stdout=sink, check=True)
    command = [
        tool("llvm-profgen-22"), "--format=text", f"--perfscript={branches}", f"--binary={program}",
        f"--data-access-perftrace={trace}", f"--output={tmp_path / 'theirs'}",
        "--use-dwarf-correlation", "--ignore-stack-samples",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    theirs = (tmp_path / "theirs").read_text().splitlines()
    ours = vtables(program, recording, LlvmOutput(tmp_path / "ours", vtables=True, probes="off"))
    assert ours == [line for line in theirs if "vtables" in line]
    assert len(ours) == 5


@pytest.mark.parametrize("contexts", ["off", "nested", "full"])
@pytest.mark.parametrize("stable", [False, True])
def test_the_rest_of_the_profile_is_as_without(
    stable: bool, contexts: str, program: Path, recording: Path, tmp_path: Path
) -> None:
    with_them, without = (
        LlvmOutput(tmp_path / str(wanted), vtables=wanted, stable=stable, contexts=contexts)  # type: ignore[arg-type]
        for wanted in (True, False)
    )
    assert len(vtables(program, recording, with_them)) >= 5
    assert vtables(program, recording, without) == []
    lines = with_them.path.read_text().splitlines()
    assert [
        line for line in lines if "vtables" not in line
    ] == without.path.read_text().splitlines()


@pytest.mark.parametrize("contexts", ["off", "nested", "full"])
def test_recordings_that_can_t_tell_say_so(
    contexts: str, recorded: Recorded, tmp_path: Path
) -> None:
    program, plain = recorded(TARGETS[0], data=False)
    with pytest.raises(OutputError, match="does not say which virtual tables"):
        vtables(program, plain, LlvmOutput(tmp_path / "out", vtables=True, contexts=contexts))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
