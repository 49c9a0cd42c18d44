from __future__ import annotations

from collections.abc import Mapping

import pytest
from builders.probed_builds import ProbedBuild

from lbr2pgo.profiles.carried.probe_code import ProbedCode
from lbr2pgo.profiles.carried.probe_successors import ProbeSuccessors
from lbr2pgo.program.program import Program

Builds = tuple[ProbedBuild, ProbedBuild]


@pytest.fixture
def codes(probed_builds: Builds) -> tuple[ProbedCode, ProbedCode]:
    old, new = (ProbedCode(Program.open(each.program)) for each in probed_builds)
    return old, new


def by_name(code: ProbedCode) -> Mapping[str, int]:
    return {code.source_name(number): number for number in code.numbers}


@pytest.fixture
def successors(codes: tuple[ProbedCode, ProbedCode]) -> ProbeSuccessors:
    old, new = codes
    return ProbeSuccessors(old, new, {number: old.checksum(number) for number in old.numbers})


def test_names_and_code_tell_what_became_of_functions(
    successors: ProbeSuccessors, codes: tuple[ProbedCode, ProbedCode]
) -> None:
    mine, theirs = map(by_name, codes)
    there = {name: successors.of(number) for name, number in mine.items()}
    assert there.pop("gone") is None
    assert there.pop("before") == theirs["after"]
    assert there == {name: theirs[name] for name in there}
    assert successors.renamed["before"] == "after"
    assert mine["typed"] != theirs["typed"], "what it takes is in its linkage name"


def test_parts_are_found(successors: ProbeSuccessors, codes: tuple[ProbedCode, ProbedCode]) -> None:
    mine, theirs = map(by_name, codes)
    probes = successors.probes(mine["whole"])
    ((part, pairs),) = successors.split_off(mine["whole"], probes)
    assert part == theirs["piece"]
    assert not pairs.to.keys() & probes.to.keys()
    assert len(pairs.to) > len(codes[1].function(part).seen) / 2
    assert not list(successors.split_off(mine["grown"], successors.probes(mine["grown"])))


def test_only_what_a_profile_tells_of_is_looked_for(codes: tuple[ProbedCode, ProbedCode]) -> None:
    old, _ = codes
    mine = by_name(old)
    found = ProbeSuccessors(*codes, {mine["grown"]: 0, 1: 0})
    assert found.of(mine["before"]) is None
    assert found.of(1) is None
    assert found.of(mine["grown"]) == mine["grown"]
