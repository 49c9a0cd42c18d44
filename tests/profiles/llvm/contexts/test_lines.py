"""Contexts by source line, judged by llvm-profgen."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.hybrid import read_hybrid
from builders.unwound import unwound

from lbr2pgo.counting.count import Reading
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.contexts.keys import ContextShape
from lbr2pgo.profiles.llvm.contexts.lines import line_profile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source

Tool = Callable[[str], str]
Walk = Callable[[int], tuple[Path, Path]]

FULL = ("--gen-cs-nested-profile=0", "--csspgo-preinliner=0", "--profile-summary-hot-count=0",
        "--use-dwarf-correlation")  # fmt: skip
HYBRID = ("noinline-cs-noprobe", "noinline-cs-pseudoprobe", "recursion-compression-noprobe",
          "recursion-compression-pseudoprobe", "func-split", "multi-load-segs",
          "unique-linkage-name-dwarf")  # fmt: skip
SHAPES = {
    "as they are": (ContextShape(), ()),
    "with recursion": (ContextShape(longest_repeat=0), ("--compress-recursion=0",)),
    "short rounds": (ContextShape(longest_repeat=1), ("--compress-recursion=1",)),
    "two callers": (ContextShape(depth=2), ("--csprof-max-context-depth=2",)),
    "no caller": (ContextShape(depth=0), ("--csprof-max-context-depth=0",)),
}


def profgen(tool: Tool, where: Path, binary: Path, recording: Path, *options: str) -> str:
    out = where / "profgen.prof"
    done = subprocess.run(
        [tool("llvm-profgen-22"), "--format=text", f"--perfscript={recording}",
         f"--binary={binary}", f"--output={out}", *FULL, *options],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out.read_text()


def ours(binary: Path, recording: Path, shape: ContextShape, *, as_llvm: bool = True) -> str:
    program = Program.open(binary)
    spaces = Reading(open_source(recording), program.image.layout).spaces
    counts = unwound(program, read_hybrid(recording), as_llvm=as_llvm, spaces=spaces)
    debug = DebugInfo.open(program.image)
    out = io.BytesIO()
    text.write(line_profile(counts, program, debug, shape, as_llvm=as_llvm).tree(), out)
    return out.getvalue().decode()


def without_attributes(profile: str) -> str:
    """Of contexts that were inlined at times, the first one that llvm-profgen's hash table shows
    decides; we say that they were."""
    return re.sub(r"(?m)^ +!Attributes:.*\n", "", profile)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", HYBRID)
def test_recorded_contexts_are_those_of_llvm_profgen(
    name: str, shape: str, corpus: Callable[[str], Path], tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    chosen, options = SHAPES[shape]
    expected = profgen(tool, tmp_path, binary, recording, *options)
    assert without_attributes(ours(binary, recording, chosen)) == without_attributes(expected)


def test_ranges_that_can_not_be_end_the_contexts(
    corpus: Callable[[str], Path], tool: Tool, tmp_path: Path
) -> None:
    binary = corpus("llvm-profgen/noinline-cs-pseudoprobe.perfbin")
    recording = corpus("llvm-profgen/invalid-range.perfscript")
    expected = profgen(tool, tmp_path, binary, recording)
    assert ours(binary, recording, ContextShape()) == expected
    assert expected.startswith("[foo]:"), "some of it has no callers"


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Walk:
    """A random program and a recording of a walk through it."""
    where = tmp_path_factory.mktemp("walked")

    def walk(seed: int) -> tuple[Path, Path]:
        binary = CProgram(seed).compile(where / f"p{seed}", compiler=tool("clang-22"))
        recording = binary.with_suffix(".perfscript")
        walked = BinaryWalk(binary, seed)
        samples = walked.hybrid(2000, HybridPlan(lost_callers=0.3 * (seed % 2)))
        recording.write_text(walked.hybrid_script(samples))
        return binary, recording

    return walk


@pytest.mark.parametrize("seed", range(6))
def test_random_contexts_are_those_of_llvm_profgen(
    seed: int, walked: Walk, tool: Tool, tmp_path: Path
) -> None:
    binary, recording = walked(seed)
    for shape, options in SHAPES.values():
        expected = profgen(tool, tmp_path, binary, recording, *options)
        assert without_attributes(ours(binary, recording, shape)) == without_attributes(expected)


def test_the_random_programs_have_what_they_are_for(
    walked: Walk,
) -> None:
    """Recursion, deep contexts, functions inlined in one context and called in another."""
    profiles = [ours(*walked(seed), ContextShape()) for seed in range(6)]
    whole = "\n".join(profiles)
    heads = [line for line in whole.splitlines() if line.startswith("[")]
    assert max(head.count(" @ ") for head in heads) > 20
    assert any(re.search(r"(f\d+):[\d.]+ @ (?:.* @ )?\1\b", head) for head in heads)
    assert whole.count("!Attributes: 1") > 10
    assert len(heads) > 1000
