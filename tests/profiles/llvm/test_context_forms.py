"""Sample profiles by calling context, as they are written: judged by LLVM's tools."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.compat import AS_LLVM_PROFGEN
from builders.context_profiles import FULL, HYBRID, LINES, without_was_inlined
from builders.fixtures import Corpus, Tool
from builders.hybrid import read_hybrid, write_hybrid
from builders.llvm_profiles import converted, profgen_of_contexts
from builders.outputs import held
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.model.waterfall import losses_of
from lbr2pgo.profiles.llvm.context_forms import STEPS
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import image_addresses

CONTEXTS = {"nested": (), "full": FULL}
MODES = {**CONTEXTS, "off": ("--ignore-stack-samples",)}


BINARIES = {"invalid-range": "noinline-cs-pseudoprobe"}
"""Of recordings that have none of their own."""


def case(corpus: Corpus, name: str) -> tuple[Path, Path]:
    binary = BINARIES.get(name, name)
    return corpus(f"llvm-profgen/{name}.perfscript"), corpus(f"llvm-profgen/{binary}.perfbin")


@pytest.mark.parametrize("contexts", MODES)
@pytest.mark.parametrize("name", [*HYBRID, *BINARIES])
def test_the_cases_of_llvm(
    name: str, contexts: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    expected = profgen_of_contexts(tool, tmp_path, *case(corpus, name), *LINES, *MODES[contexts])
    found = converted(tmp_path, *case(corpus, name), compat=True, probes="off", contexts=contexts)
    if contexts == "full":
        expected, found = without_was_inlined(expected), without_was_inlined(found)
    assert found == expected


PROBES = "-fpseudo-probe-for-profiling"
PROBED = ("noinline-cs-pseudoprobe", "recursion-compression-pseudoprobe", "invalid-range")


@pytest.mark.parametrize("contexts", MODES)
@pytest.mark.parametrize("name", PROBED)
def test_the_cases_of_llvm_with_probes(
    name: str, contexts: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    expected = profgen_of_contexts(tool, tmp_path, *case(corpus, name), *MODES[contexts])
    found = converted(tmp_path, *case(corpus, name), compat=True, contexts=contexts)
    assert "!CFGChecksum" in found
    assert found == expected


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> tuple[Path, Path]:
    """A recording of a random program whose call stacks lack callers at times, and the program."""
    where = tmp_path_factory.mktemp("walked") / "p"
    return walk_of(CProgram(1).compile(where, compiler=tool("clang-22")))


def walk_of(binary: Path, only: str | None = None) -> tuple[Path, Path]:
    recording = binary.with_suffix(".perfscript")
    walk = BinaryWalk(binary, 1, only)
    recording.write_text(walk.hybrid_script(walk.hybrid(2000, HybridPlan(lost_callers=0.3))))
    return recording, binary


def done(case: tuple[Path, Path], where: Path, **options: object) -> Conversion:
    recording, binary = case
    made = output("llvm", where / "out", **options)
    found = convert(ConvertOptions((recording,), binary, outputs=(made,)))
    waterfall.check(found.tallies, steps())
    return found


def shown(tool: Tool, profile: Path) -> str:
    command = [tool("llvm-profdata-22"), "show", "--sample", str(profile)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> tuple[Path, Path]:
    """The same of a program with pseudo probes."""
    where = tmp_path_factory.mktemp("probed") / "p"
    return walk_of(CProgram(1).compile(where, PROBES, compiler=tool("clang-22")))


@pytest.fixture(params=["walked", "probed"])
def either(request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """By source line, and by pseudo probe."""
    found: tuple[Path, Path] = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("contexts", CONTEXTS)
def test_llvm_profdata_reads_both_forms_alike(
    contexts: str, either: tuple[Path, Path], tool: Tool, tmp_path: Path
) -> None:
    done(either, tmp_path, contexts=contexts)
    text, as_text = shown(tool, tmp_path / "out"), held(tmp_path / "out")
    done(either, tmp_path, contexts=contexts, form="extbinary")
    assert sorted(shown(tool, tmp_path / "out").splitlines()) == sorted(text.splitlines())
    as_binary = held(tmp_path / "out")
    assert isinstance(as_text, SampleProfile)
    assert isinstance(as_binary, SampleProfile)
    assert as_binary.functions == as_text.functions
    assert as_binary.is_cs == (contexts == "full")


@pytest.mark.parametrize("contexts", CONTEXTS)
def test_sections_are_those_of_llvm_profgen(
    contexts: str, either: tuple[Path, Path], tool: Tool, tmp_path: Path
) -> None:
    """Their types, flags and sizes."""
    recording, binary = either
    made = output("llvm", tmp_path / "ours", contexts=contexts, form="extbinary")
    convert(ConvertOptions((recording,), binary, outputs=(made,), compat=AS_LLVM_PROFGEN))
    subprocess.run(
        [tool("llvm-profgen-22"), "--format=extbinary", f"--perfscript={recording}",
         f"--binary={binary}", f"--output={tmp_path / 'theirs'}", *CONTEXTS[contexts]], check=True,
        capture_output=True,
    )  # fmt: skip
    ours, theirs = (sections(tool, tmp_path / name) for name in ("ours", "theirs"))
    assert ours == theirs


def sections(tool: Tool, profile: Path) -> list[str]:
    command = [tool("llvm-profdata-22"), "show", "--sample", "--show-sec-info-only", str(profile)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_contexts_are_nested_unless_asked_otherwise(
    walked: tuple[Path, Path], tmp_path: Path
) -> None:
    nested = done(walked, tmp_path).tallies
    assert "!Attributes: 6" in (tmp_path / "out").read_text()
    assert {step.key for step in STEPS} <= nested.keys()
    off = done(walked, tmp_path, contexts="off").tallies
    assert "!Attributes" not in (tmp_path / "out").read_text()
    assert "llvm_context_runs" not in off
    assert off["llvm_runs"] > 0


def test_every_fall_through_is_in_some_context(walked: tuple[Path, Path], tmp_path: Path) -> None:
    tallies = done(walked, tmp_path).tallies
    assert tallies["context_runs"] == tallies["runs_valid"]
    assert tallies["samples_unwound"] == tallies["samples_mapped"]
    # Those that the C library's start calls, which has no debug information.
    assert 0 < losses_of(tallies, "context_callers").pop("no_call_location") < 10
    assert tallies["call_stacks_mended"] > 10


def test_a_damaged_call_stack_has_its_line(walked: tuple[Path, Path], tmp_path: Path) -> None:
    """The second one stops at an address without a call before it, a third one is missing."""
    recording, binary = walked
    samples = read_hybrid(recording)
    leaf = samples[1].frames[0]
    samples[1] = replace(samples[1], frames=[leaf, leaf, *samples[1].frames[1:]])
    samples[2] = replace(samples[2], frames=[])
    head = recording.read_text().split("\n\n")[0]
    damaged = tmp_path / "damaged.perfscript"
    damaged.write_text(f"{head}\n\n{write_hybrid(samples)}")
    tallies = done((damaged, binary), tmp_path).tallies
    assert losses_of(tallies, "call_stacks_whole") == {"no_call": 1, "no_call_stack": 1}
    assert tallies["samples_unwound"] == len(samples)


def test_contexts_keep_as_many_callers_as_they_may(
    walked: tuple[Path, Path], tmp_path: Path
) -> None:
    deepest = []
    for options in ({}, {"max_context_depth": 2}, {"max_context_depth": 0}, {"max_recursion": 0}):
        done(walked, tmp_path, contexts="full", **options)
        heads = [x for x in (tmp_path / "out").read_text().splitlines() if x.startswith("[")]
        deepest.append(max(head.count(" @ ") for head in heads))
    assert deepest[0] > 5
    assert deepest[1:3] == [3, 1]  # what is called from the deepest is known, too
    assert deepest[3] > deepest[0]


def test_contexts_that_nothing_tells_are_refused_if_asked_for(tmp_path: Path) -> None:
    done((RECORDING, PIE), tmp_path)
    with pytest.raises(IncompleteError, match="no call stacks") as caught:
        done((RECORDING, PIE), tmp_path, contexts="nested")
    assert "--call-graph fp" in str(caught.value.cure)


def test_call_stacks_that_hold_nothing_make_no_contexts(
    walked: tuple[Path, Path], tmp_path: Path
) -> None:
    recording, binary = walked
    samples = [replace(sample, frames=[]) for sample in read_hybrid(recording)]
    head = recording.read_text().split("\n\n")[0]
    bare = tmp_path / "bare.perfscript"
    bare.write_text(f"{head}\n\n{write_hybrid(samples)}")
    assert "llvm_runs" in done((bare, binary), tmp_path).tallies


@pytest.mark.parametrize("contexts", CONTEXTS)
@pytest.mark.parametrize("compat", [OURS, AS_LLVM_PROFGEN])
def test_what_ran_without_debug_information_is_told(
    compat: Compat, contexts: str, tmp_path: Path, tool: Tool
) -> None:
    """Only a function that did not run has some."""
    known = tmp_path / "known.o"
    source = tmp_path / "known.c"
    source.write_text("int known(void) { return 1; }\n")
    subprocess.run([tool("clang-22"), "-g", "-c", source, "-o", known], check=True)
    binary = CProgram(1).compile(tmp_path / "p", "-g0", known.name, compiler=tool("clang-22"))
    recording, _ = walk_of(binary, "f")
    made = (output("llvm", tmp_path / "out", contexts=contexts),)
    with pytest.raises(EmptyProfileError, match="attributed to a source location") as raised:
        convert(ConvertOptions((recording,), binary, outputs=made, compat=compat))
    assert "build with -g" in str(raised.value.cure)


def with_frames(case: tuple[Path, Path], where: Path, frames: list[int], tail: str = "") -> Path:
    """The recording's first sample, with so many callers that it is deep, or has no end."""
    head = case[0].read_text().split("\n\n")[0]
    sample = read_hybrid(case[0])[0]
    sample = replace(sample, frames=[sample.frames[0], *frames])
    path = where / "deep.perfscript"
    path.write_text(f"{head}\n\n{write_hybrid([sample])}{tail}")
    return path


def return_addresses(case: tuple[Path, Path]) -> list[int]:
    """Of calls that have source lines, and functions with frames."""
    frames = [frame for sample in read_hybrid(case[0]) for frame in sample.frames[1:-3]]
    known = image_addresses(np.array(sorted({f for f in frames if f < 1 << 32}), np.uint64))
    debug = DebugInfo.open(Program.open(case[1]).image)
    function = debug.functions_for(known).containing(known)
    return [f for f, at in zip(known.tolist(), function.tolist(), strict=True) if at >= 0]


def test_recursion_ten_thousand_deep_shows_once(walked: tuple[Path, Path], tmp_path: Path) -> None:
    frames = return_addresses(walked)[:3] * 3334
    deep = with_frames(walked, tmp_path, frames)
    tallies = done((deep, walked[1]), tmp_path, contexts="full").tallies
    assert tallies["call_stacks_whole"] == 1
    heads = [x for x in (tmp_path / "out").read_text().splitlines() if x.startswith("[")]
    assert 3 <= max(head.count(" @ ") for head in heads) < 40


def test_ten_thousand_callers_in_no_order_take_no_minute(
    walked: tuple[Path, Path], tmp_path: Path
) -> None:
    frames = random.Random(1).choices(return_addresses(walked), k=10_000)
    deep = with_frames(walked, tmp_path, frames)
    started = time.process_time()
    tallies = done((deep, walked[1]), tmp_path).tallies
    assert time.process_time() - started < 20
    assert tallies["call_stacks_whole"] == 1


def test_a_million_frames_are_cut_and_told(walked: tuple[Path, Path], tmp_path: Path) -> None:
    frames = return_addresses(walked)[:2] * 500_000
    found = done((with_frames(walked, tmp_path, frames), walked[1]), tmp_path)
    assert losses_of(found.tallies, "call_stacks_whole") == {"too_deep": 1}
    assert found.tallies["samples_unwound"] == 1
    assert any("frames: 1" in note for note in found.notes)


def test_a_call_stack_without_an_end_is_a_sample_without_branches(
    walked: tuple[Path, Path], tmp_path: Path
) -> None:
    frame = return_addresses(walked)[0]
    endless = with_frames(walked, tmp_path, [frame], tail=f"\t{frame:x}\n" * 300_000)
    tallies = done((endless, walked[1]), tmp_path).tallies
    assert losses_of(tallies, "samples_with_stack")["no_stack"] > 0
    assert tallies["samples_unwound"] == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("compat", [OURS, AS_LLVM_PROFGEN])
def test_damaged_stacks_are_accounted_for(
    compat: Compat, strict: bool, either: tuple[Path, Path], tmp_path: Path
) -> None:
    """The waterfall adds up, whatever stands in the two stacks."""
    recording, binary = either
    draw, samples = random.Random(1), read_hybrid(recording)
    frames = [frame for sample in samples for frame in sample.frames]
    odd = [
        replace(
            sample,
            frames=[f if draw.random() < 0.97 else draw.choice([f + 1, 0, 2**64 - 1, *frames[:9]])
                    for f in sample.frames][: draw.choice([0, 3, 200])],
            entries=[e if draw.random() < 0.97 else draw.choice([(0, 0), e[::-1], (e[0] + 1, e[1])])
                     for e in sample.entries],
        )
        for sample in samples
    ]  # fmt: skip
    damaged = tmp_path / "damaged.perfscript"
    damaged.write_text(recording.read_text().split("\n\n")[0] + "\n\n" + write_hybrid(odd))
    made = output("llvm", tmp_path / "out", contexts="full")
    options = ConvertOptions((damaged,), binary, outputs=(made,), compat=compat, strict=strict)
    tallies = convert(options).tallies
    waterfall.check(tallies, steps())
    assert losses_of(tallies, "call_stacks_whole")["no_call"] > 0
    assert losses_of(tallies, "context_runs")["broken"] > 0
    assert losses_of(tallies, "context_callers")["behind_broken"] > 0
