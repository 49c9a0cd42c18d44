"""Random programs, and recordings of them with call stacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.context_profiles import line_contexts

from lbr2pgo.profiles.llvm.contexts.lines import LineContexts


@pytest.fixture(scope="session")
def walk(
    tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]
) -> Callable[[int], tuple[Path, Path]]:
    """A random program by its seed, and a recording of a walk through it."""
    known: dict[int, tuple[Path, Path]] = {}

    def walk(seed: int) -> tuple[Path, Path]:
        if seed not in known:
            where = tmp_path_factory.mktemp("walked")
            binary = CProgram(seed).compile(where / "program", compiler=tool("clang-22"))
            known[seed] = binary, binary.with_suffix(".perfscript")
            walked = BinaryWalk(binary, seed)
            samples = walked.hybrid(2000, HybridPlan(lost_callers=0.3 * (seed % 2)))
            known[seed][1].write_text(walked.hybrid_script(samples))
        return known[seed]

    return walk


@pytest.fixture(scope="session")
def walked_contexts(walk: Callable[[int], tuple[Path, Path]]) -> Callable[[int], LineContexts]:
    """What ran in which context, as llvm-profgen sees it, by the seed of the program."""
    known: dict[int, LineContexts] = {}

    def contexts(seed: int) -> LineContexts:
        if seed not in known:
            known[seed] = line_contexts(*walk(seed))
        return known[seed]

    return contexts
