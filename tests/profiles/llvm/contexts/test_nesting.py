"""Profiles with contexts nested into functions, judged by llvm-profgen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.context_profiles import (
    HYBRID,
    LINES,
    as_text,
    context_profile,
    inlined,
    line_contexts,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts

from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts
from lbr2pgo.profiles.llvm.contexts.nesting import nested


@pytest.mark.parametrize("name", HYBRID)
def test_recorded_programs_have_llvm_profgens_profile(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES)
    assert as_text(nested(inlined(line_contexts(binary, recording)))) == expected


@pytest.mark.parametrize("seed", [*range(6), 8, 20])
def test_random_programs_have_llvm_profgens_profile(
    seed: int, walk: Walk, walked_contexts: Callable[[int], LineContexts], tool: Tool,
    tmp_path: Path,
) -> None:  # fmt: skip
    expected = profgen_of_contexts(tool, tmp_path, *walk(seed)[::-1], *LINES)
    assert as_text(nested(inlined(walked_contexts(seed)))) == expected


def test_a_call_is_counted_where_it_went_or_as_a_call_but_not_twice() -> None:
    text = as_text(nested(context_profile([-1, 0], has_samples=[True, True])))
    assert text == ("f0:17:3\n 1: 1\n 1: f1:10\n  1: 4\n  !Attributes: 2\n !Attributes: 2\n")


def test_what_is_called_from_a_context_without_samples_stands_alone() -> None:
    text = as_text(nested(context_profile([-1, 0, 1], has_samples=[True, False, True])))
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "f0:10:3",
        "f2:10:3",
    ]


def test_nothing_stays_nothing() -> None:
    empty = nested(context_profile([], has_samples=[]))
    assert len(empty) == 0
