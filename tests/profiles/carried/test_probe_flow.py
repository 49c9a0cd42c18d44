from __future__ import annotations

import pytest
from builders.probed_builds import ProbedBuild

from lbr2pgo.profiles.carried.probe_code import ProbedCode
from lbr2pgo.profiles.carried.probe_flow import ProbeFlow
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.program.program import Program

Builds = tuple[ProbedBuild, ProbedBuild]
NAMES = ("same", "grown", "after", "piece", "whole")


def known(build: ProbedBuild, name: str) -> tuple[ProbeFlow, dict[int, int]]:
    flow = ProbedCode(Program.open(build.program)).flow(guid(name))
    assert flow is not None
    body = text.read(build.profile).functions[name].body
    return flow, {index: count for (index, _), count in body.items()}


@pytest.mark.parametrize("name", NAMES)
def test_counts_that_add_up_stay(name: str, probed_builds: Builds) -> None:
    flow, counts = known(probed_builds[1], name)
    found = flow.counts(counts, counts.keys())
    assert {index: counts[index] for index in found if index in counts} == {
        index: count for index, count in found.items() if index in counts
    }


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_is_told_of_unknown_probes_is_what_ran(name: str, probed_builds: Builds) -> None:
    """Any one left out is found again, or not told; some are found."""
    flow, counts = known(probed_builds[1], name)
    found = 0
    for left_out, count in counts.items():
        others = {index: each for index, each in counts.items() if index != left_out}
        told = flow.counts(others, others.keys())
        assert told.get(left_out, count) == count, left_out
        found += left_out in told
    assert found > len(counts) / 2


def test_sure_counts_stay_where_others_contradict_them(probed_builds: Builds) -> None:
    flow, counts = known(probed_builds[1], "after")
    wrong = {**counts, 6: 2 * counts[6]}
    assert flow.counts(wrong, wrong.keys() - {6})[6] == counts[6]
    assert flow.counts(wrong, {6, 8})[6] > 1.9 * counts[6]


def test_ways_that_are_open_are_not_told(probed_builds: Builds) -> None:
    flow, counts = known(probed_builds[1], "after")
    told = flow.counts({1: counts[1]}, {1})
    assert told[1] == counts[1]
    assert 6 not in told
    assert 8 not in told


def test_blocks_before_the_end_of_the_program_are_cold(probed_builds: Builds) -> None:
    flow, counts = known(probed_builds[1], "grown")
    others = {index: count for index, count in counts.items() if index not in (2, 3)}
    assert [flow.counts(others, set())[index] for index in (2, 3)] == [0, 0]
