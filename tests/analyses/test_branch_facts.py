from __future__ import annotations

import pytest
from builders.evidence import evidence, flags, gather
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses import branch_facts as module
from lbr2pgo.analyses.branch_facts import BranchFacts, branch_facts
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.indirect_targets import indirect_targets
from lbr2pgo.analyses.mispredictions import mispredictions
from lbr2pgo.analyses.outcomes import outcomes
from lbr2pgo.program.code.named_functions import find_function

LOOP, OVER = (0x1016, 0x1005), (0x1006, 0x1010)


def facts(found: Evidence, function: str) -> dict[int, BranchFacts]:
    region = find_function(found.program, function)
    return {each.address: each for each in branch_facts(found.of_function(region))}


@pytest.fixture(scope="module")
def recorded() -> Evidence:
    return gather((RECORDING,), PIE).evidence


def test_figures_are_those_of_the_tables(recorded: Evidence) -> None:
    found = facts(recorded, "run")
    by_outcome, by_prediction = (
        {row["address"]: row for row in table.records() if row["function"] == "run"}
        for table in (outcomes(recorded, None)[0], mispredictions(recorded, None)[1])
    )
    assert found.keys() == by_outcome.keys() | by_prediction.keys()
    for address, row in by_outcome.items():
        told = found[int(address or 0)]
        assert (told.taken, told.not_taken) == (row["taken"], row["not_taken"])
        assert (told.low, told.high) == (row["probability_low"], row["probability_high"])
    for address, row in by_prediction.items():
        told = found[int(address or 0)]
        assert (told.predicted, told.mispredicted) == (row["predicted"], row["mispredicted"])
        assert (told.rate_low, told.rate_high) == (row["rate_low"], row["rate_high"])


def test_targets_are_those_of_the_table(recorded: Evidence) -> None:
    site = max(facts(recorded, "run").values(), key=lambda each: len(each.targets))
    rows = [
        (row["target_address"], row["count"], row["mispredicted"], row["case"])
        for row in indirect_targets(recorded, None)[1].records()
        if row["site_address"] == site.address
    ]
    assert len(rows) > 3
    told = [(each.address, each.count, each.mispredicted, each.case) for each in site.targets]
    assert sorted(told, key=str) == sorted(rows, key=str)
    assert told[0][1] == max(count for _, count, *_ in told)


def test_only_the_most_frequent_targets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [Sample([(0x1020, to)]) for to in (0x1040, 0x1050, 0x1050)]
    monkeypatch.setattr(module, "MOST_TARGETS", 1)
    (target,) = facts(evidence(*calls), "dispatch")[0x1020].targets
    assert (target.address, target.function, target.count) == (0x1050, "h", 2)


def test_it_says_why_a_branch_matters() -> None:
    missed = [Sample([(*OVER, flags(missed=True)), LOOP])] * 20
    calls = [Sample([(0x1020, 0x1040)])] * 10
    found = evidence(*missed, *calls)
    main, dispatch = facts(found, "main"), facts(found, "dispatch")
    layout, cold, costly = main[OVER[0]].reasons
    assert layout.endswith("it would save 20 taken branches, 40.0% of all.")
    assert cold.endswith("20 taken branches less, 40.0% of all.")
    assert costly == "It has 100.0% of all mispredictions."
    assert dispatch[0x1020].reasons == (
        "A direct call of its hottest target would cover 10 taken branches, 20.0% of all.",
    )


def test_what_the_recording_does_not_tell_is_none() -> None:
    silent = evidence(Sample([(*LOOP, 0), (*LOOP, 0)]))
    told = facts(silent, "main")[LOOP[0]]
    assert (told.predicted, told.mispredicted, told.rate_low) == (None, None, None)
    called = facts(evidence(Sample([(0x1020, 0x1040)])), "dispatch")[0x1020]
    assert (called.taken, called.low) == (None, None)
