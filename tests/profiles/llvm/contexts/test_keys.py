"""What ran in contexts that have names: the unsymbolized profile of random programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.compat import AS_LLVM_PROFGEN
from builders.context_profiles import LINES
from builders.fixtures import Tool, Walk
from builders.llvm_profiles import profgen_of_contexts

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output


@pytest.mark.parametrize("seed", [1, 8])
def test_random_programs_have_llvm_profgens_contexts(
    seed: int, walk: Walk, probed_walk: Walk, tool: Tool, tmp_path: Path
) -> None:
    for walked, contexts, options in (walk, "lines", LINES), (probed_walk, "addresses", ()):
        binary, recording = walked(seed)
        expected = profgen_of_contexts(
            tool, tmp_path, recording, binary, "--skip-symbolization", *options
        )
        made = output("unsymbolized", tmp_path / "raw", contexts=contexts)
        convert(ConvertOptions((recording,), binary, outputs=(made,), compat=AS_LLVM_PROFGEN))
        assert (tmp_path / "raw").read_text() == expected
        assert expected.count("[") > 10
