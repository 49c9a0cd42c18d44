"""Unsymbolized ranges and branches by calling context, as llvm-profgen writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.compat import llvm_profgen_if
from builders.context_profiles import HYBRID, LINES
from builders.fixtures import Corpus, Tool
from builders.llvm_profiles import profgen_of_contexts
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.support.errors import OutputError

RAW = "--skip-symbolization"


def written(recording: Path, binary: Path, where: Path, contexts: str, *, compat: bool) -> str:
    made = output("unsymbolized", where / "raw", contexts=contexts)
    done = convert(
        ConvertOptions((recording,), binary, outputs=(made,), compat=llvm_profgen_if(compat))
    )
    waterfall.check(done.tallies, steps())
    return (where / "raw").read_text()


@pytest.mark.parametrize("name", HYBRID)
def test_the_cases_of_llvm(name: str, corpus: Corpus, tool: Tool, tmp_path: Path) -> None:
    case = corpus(f"llvm-profgen/{name}.perfscript"), corpus(f"llvm-profgen/{name}.perfbin")
    expected = profgen_of_contexts(tool, tmp_path, *case, RAW, *LINES)
    assert written(*case, tmp_path, "lines", compat=True) == expected
    if "pseudoprobe" in name:
        expected = profgen_of_contexts(tool, tmp_path, *case, RAW)
        assert written(*case, tmp_path, "addresses", compat=True) == expected


@pytest.mark.parametrize("contexts", ["lines", "addresses"])
def test_samples_in_prologues_count_without_compat(
    contexts: str, corpus: Corpus, tmp_path: Path
) -> None:
    name = "noinline-cs-noprobe"
    case = corpus(f"llvm-profgen/{name}.perfscript"), corpus(f"llvm-profgen/{name}.perfbin")
    theirs, ours = (written(*case, tmp_path, contexts, compat=c) for c in (True, False))
    assert counts(ours).keys() == counts(theirs).keys()
    assert all(counts(ours)[row] > count for row, count in counts(theirs).items())


def counts(text: str) -> dict[str, int]:
    """Of each range and branch in its context."""
    found, context = {}, ""
    for line in text.splitlines():
        context = line if line.startswith("[") else context
        row, is_row, count = line.rpartition(":")
        if is_row and line.startswith(" "):
            found[f"{context} {row}"] = int(count)
    return found


def test_without_call_stacks_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no call stacks"):
        written(RECORDING, PIE, tmp_path, "lines", compat=False)
    assert not (tmp_path / "raw").exists()
