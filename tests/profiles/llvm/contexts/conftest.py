"""Random programs, and recordings of them with call stacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.context_profiles import line_contexts
from builders.fixtures import Tool, Walk

from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts


@pytest.fixture(scope="session")
def walk(
    tmp_path_factory: pytest.TempPathFactory, tool: Tool
) -> Callable[[int], tuple[Path, Path]]:
    """A random program by its seed, and a recording of a walk through it."""
    return _walks(tmp_path_factory, tool("clang-22"))


@pytest.fixture(scope="session")
def probed_walk(
    tmp_path_factory: pytest.TempPathFactory, tool: Tool
) -> Callable[[int], tuple[Path, Path]]:
    """The same with pseudo probes."""
    return _walks(tmp_path_factory, tool("clang-22"), "-fpseudo-probe-for-profiling")


def _walks(
    folders: pytest.TempPathFactory, compiler: str, *flags: str
) -> Callable[[int], tuple[Path, Path]]:
    @cache
    def walk(seed: int) -> tuple[Path, Path]:
        binary = folders.mktemp("walked") / "program"
        CProgram(seed).compile(binary, *flags, compiler=compiler)
        recording = binary.with_suffix(".perfscript")
        walked = BinaryWalk(binary, seed)
        samples = walked.hybrid(2000, HybridPlan(lost_callers=0.3 * (seed % 2)))
        recording.write_text(walked.hybrid_script(samples))
        return binary, recording

    return walk


@pytest.fixture(scope="session")
def walked_contexts(walk: Walk) -> Callable[[int], LineContexts]:
    """What ran in which context, as llvm-profgen sees it, by the seed of the program."""

    @cache
    def contexts(seed: int) -> LineContexts:
        return line_contexts(*walk(seed))

    return contexts
