"""Where indirect jumps may lead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, STATIC

from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.distinct import among


@pytest.mark.parametrize("path", [PIE, STATIC], ids=["relocated", "fixed"])
def test_all_labels_that_an_interpreter_jumped_to_are_found(path: Path) -> None:
    program = Program.open(path)
    exact = PIE.parents[1] / "recordings" / f"x86-64-{path.name}.exact.npz"
    edges = exact_edges_of(exact, program)
    run = program.functions.by_name("run")
    code = program.instructions_for(program.functions.start[[run]])
    jumps = code.address[code.kind == Kind.INDIRECT_JUMP]
    went = edges.target[edges.inside & np.isin(edges.source, jumps)]
    found = np.sort(indirect_targets(program, program.functions.start[[run]]).target)
    assert len(np.unique(went)) > 10
    assert among(went, found).all()
    assert not among(program.regions.start, found).any()
