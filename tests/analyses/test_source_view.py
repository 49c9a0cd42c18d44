from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from builders.evidence import evidence, gather
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_graph import hottest_regions
from lbr2pgo.analyses.latency import valid_cycles
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.analyses.source_view import line_figures
from lbr2pgo.model.branch_stacks import MISSING, SATURATED


@pytest.fixture(scope="module")
def found() -> Evidence:
    return gather((RECORDING,), PIE).evidence


def by_line(found: Evidence, values: dict[int, float]) -> Counter[int]:
    """Values by instruction, added up by line of the only source file."""
    lines = found.debug.lines(np.array([*values], np.uint64)).line.tolist()
    total: Counter[int] = Counter()
    for line, value in zip(lines, values.values(), strict=True):
        total[line] += value  # type: ignore[assignment]
    return total


def test_figures_are_plain_sums(found: Evidence) -> None:
    region = hottest_regions(found, 1)[0][0]
    start, end = (int(a[region]) for a in (found.program.regions.start, found.program.regions.end))
    figures = line_figures(found, region)
    outcomes = estimate(found)
    taken = by_line(
        found, dict(zip(outcomes.address.tolist(), outcomes.taken.tolist(), strict=True))
    )
    code = found.flow.instructions
    inside = [i for i, a in enumerate(code.address.tolist()) if start <= a < end]
    most: dict[int, int] = defaultdict(int)
    lines = found.debug.lines(code.address[inside]).line.tolist()
    for i, line in zip(inside, lines, strict=True):
        most[line] = max(most[line], int(found.flow.executed[i]))
    for line, executed, jumped in zip(
        figures.line.tolist(), figures.executed.tolist(), figures.taken.tolist(), strict=True
    ):
        assert executed == most[line]
        assert jumped == taken[line]
    assert figures.files == ("./src/interp.c",)


def test_cycles_of_a_run_are_spread_over_its_instructions(found: Evidence) -> None:
    code = found.flow.instructions
    addresses = code.address.tolist()
    has_line = found.debug.lines(code.address).line > 0
    cycles, expected = valid_cycles(found), 0.0
    for start, end, value, count in zip(
        cycles.start.tolist(), cycles.end.tolist(), cycles.cycles.tolist(), cycles.count.tolist(),
        strict=True,
    ):  # fmt: skip
        if value not in (MISSING, SATURATED):
            inside = slice(addresses.index(start), addresses.index(end) + 1)
            expected += value * count * has_line[inside].mean()
    regions = found.program.regions
    every = np.unique(regions.parent[regions.containing(code.address)]).tolist()
    spread = sum(line_figures(found, region).cycles.sum() for region in every)
    assert spread == pytest.approx(expected, rel=1e-6)
    assert spread > 0


def test_a_program_without_lines_has_none() -> None:
    found = evidence(Sample([(0x1016, 0x1005)]))
    assert len(line_figures(found, int(found.program.regions.containing(
        np.array([0x1000], np.uint64))[0]))) == 0  # fmt: skip
