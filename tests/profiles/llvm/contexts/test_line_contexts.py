"""Contexts by source line, judged by llvm-profgen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.context_profiles import (
    FULL,
    HYBRID,
    LINES,
    as_text,
    full,
    line_contexts,
    without_was_inlined,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts

from lbr2pgo.profiles.llvm.contexts.keys import ContextShape
from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts

SHAPES = {
    "as they are": (ContextShape(), ()),
    "with recursion": (ContextShape(longest_repeat=0), ("--compress-recursion=0",)),
    "short rounds": (ContextShape(longest_repeat=1), ("--compress-recursion=1",)),
    "two callers": (ContextShape(depth=2), ("--csprof-max-context-depth=2",)),
    "no caller": (ContextShape(depth=0), ("--csprof-max-context-depth=0",)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", HYBRID)
def test_recorded_contexts_are_those_of_llvm_profgen(
    name: str, shape: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    chosen, options = SHAPES[shape]
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES, *FULL, *options)
    found = as_text(full(line_contexts(binary, recording), chosen))
    assert without_was_inlined(found) == without_was_inlined(expected)


def test_ranges_that_can_not_be_end_the_contexts(
    corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus("llvm-profgen/noinline-cs-pseudoprobe.perfbin")
    recording = corpus("llvm-profgen/invalid-range.perfscript")
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES, *FULL)
    assert as_text(full(line_contexts(binary, recording))) == expected
    assert expected.startswith("[foo]:"), "some of it has no callers"


@pytest.mark.parametrize("seed", range(6))
def test_random_contexts_are_those_of_llvm_profgen(
    seed: int, walk: Walk, walked_contexts: Callable[[int], LineContexts], tool: Tool,
    tmp_path: Path,
) -> None:  # fmt: skip
    contexts = walked_contexts(seed)
    for shape, options in SHAPES.values():
        expected = profgen_of_contexts(tool, tmp_path, *walk(seed)[::-1], *LINES, *FULL, *options)
        found = as_text(full(contexts, shape))
        assert without_was_inlined(found) == without_was_inlined(expected)


def test_the_random_programs_have_what_they_are_for(
    walked_contexts: Callable[[int], LineContexts],
) -> None:
    """Recursion, deep contexts, functions inlined in one context and called in another."""
    whole = "\n".join(as_text(full(walked_contexts(seed))) for seed in range(6))
    heads = [line for line in whole.splitlines() if line.startswith("[")]
    assert max(head.count(" @ ") for head in heads) > 20
    assert any(re.search(r"(f\d+):[\d.]+ @ (?:.* @ )?\1\b", head) for head in heads)
    assert whole.count("!Attributes: 1") > 10
    assert len(heads) > 1000
