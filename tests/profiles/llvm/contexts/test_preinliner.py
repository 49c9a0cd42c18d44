"""Contexts that are left when it is decided what to inline, judged by llvm-profgen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.context_profiles import (
    HYBRID,
    LINES,
    PREINLINED,
    as_text,
    inlined,
    line_contexts,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts

from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts


@pytest.mark.parametrize("name", HYBRID)
def test_recorded_programs_keep_the_contexts_that_llvm_profgen_keeps(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES, *PREINLINED)
    assert as_text(inlined(line_contexts(binary, recording))) == expected


# 8: a call that nothing follows; 20: equal candidates.
@pytest.mark.parametrize("seed", [*range(6), 8, 20])
def test_random_programs_keep_the_contexts_that_llvm_profgen_keeps(
    seed: int, walk: Walk, walked_contexts: Callable[[int], LineContexts], tool: Tool,
    tmp_path: Path,
) -> None:  # fmt: skip
    expected = profgen_of_contexts(tool, tmp_path, *walk(seed)[::-1], *LINES, *PREINLINED)
    assert as_text(inlined(walked_contexts(seed))) == expected


def sums_by_name(profile: ContextProfile) -> dict[str, list[int]]:
    sums: dict[str, list[int]] = {}
    c = profile.table.contexts
    for name, *counts in zip(c.name.tolist(), c.total.tolist(), c.head.tolist(), strict=True):
        of_name = sums.setdefault(profile.table.names[name], [0, 0])
        of_name[:] = [a + b for a, b in zip(of_name, counts, strict=True)]
    return {name: counts for name, counts in sums.items() if any(counts)}


@pytest.mark.parametrize("seed", range(6))
def test_no_sample_is_lost(seed: int, walk: Walk) -> None:
    contexts = line_contexts(*walk(seed), as_llvm=False)
    left = inlined(contexts, as_llvm=False)
    assert sums_by_name(left) == sums_by_name(contexts.profile())
    is_inlined = left.attributes & SHOULD_BE_INLINED != 0
    assert (is_inlined | (left.table.contexts.parent < 0))[left.has_samples].all()


def test_random_programs_have_calls_to_inline(
    walked_contexts: Callable[[int], LineContexts],
) -> None:
    inlined_calls = [as_text(inlined(walked_contexts(s))).count("Attributes: 2") for s in range(6)]
    assert sum(inlined_calls) > 20
