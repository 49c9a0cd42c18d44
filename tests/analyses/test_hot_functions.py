from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from builders.evidence import evidence, flags, gather, with_limits
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.hot_functions import hot_functions
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.code.named_functions import find_function

LOOP = (0x1016, 0x1005)
TAKEN = (0x1006, 0x1010)


def rows(found) -> dict[str, dict[str, object]]:
    return {row["function"]: row for row in hot_functions(found, None).records()}


def test_shares_are_of_all_functions() -> None:
    stack = [(0x1012, 0x1015), TAKEN, LOOP]
    found = rows(evidence(Sample(stack), Sample([(0x1041, 0x1005), (0x1000, 0x1040)])))
    # main: 1005 1006, 1010 1011 1012; g: 1040 1041.
    assert found["main"]["instructions_share"] == pytest.approx(5 / 7)
    assert found["g"]["instructions_share"] == pytest.approx(2 / 7)
    assert [found[name]["branches"] for name in ("main", "g")] == [4, 1]
    assert found["main"]["branches_share"] == pytest.approx(4 / 5)


def test_cycles_are_of_the_function_in_which_the_run_is() -> None:
    stack = [(*TAKEN, flags(30)), (*LOOP, flags(5))]
    other = [(0x1041, 0x1005, flags(10)), (0x1000, 0x1040, flags(99))]
    found = rows(evidence(Sample(stack), Sample(other)))
    assert found["main"]["cycles_share"] == pytest.approx(0.75)
    assert found["g"]["cycles_share"] == pytest.approx(0.25)


def test_mispredictions_are_of_the_function_that_branches() -> None:
    found = rows(
        evidence(
            Sample([(*LOOP, flags(missed=True)), (*TAKEN, flags())]),
            Sample([(0x1041, 0x1005, flags(missed=True)), (0x1000, 0x1040, flags(missed=True))]),
        )
    )
    assert (found["main"]["mispredicted"], found["g"]["mispredicted"]) == (2, 1)
    assert found["main"]["mispredicted_share"] == pytest.approx(2 / 3)


def test_what_was_not_recorded_is_not_known() -> None:
    found = evidence(Sample([(*LOOP, 0), (*TAKEN, 0)]))
    (row,) = hot_functions(found).records()
    assert (row["cycles_share"], row["mispredicted"]) == (None, None)
    assert any("no cycles" in note for note in hot_functions(found).notes)


def test_a_filtered_recording_ranks_by_branches() -> None:
    filters = 1 << BRANCH_FILTER_BITS["cond"]
    samples = [Sample([(0x1041, 0x1005)])] + [Sample([LOOP])] * 2
    table = hot_functions(evidence(*samples, filters=filters))
    assert table.column("function") == ("main", "g")
    assert set(table.column("instructions_share")) == {None}


def test_only_the_function_that_was_asked_for() -> None:
    found = evidence(Sample([(0x1041, 0x1005), (0x1000, 0x1040)]), Sample([LOOP]))
    region = find_function(found.program, "g")
    table = hot_functions(replace(found, function=region))
    assert table.column("function") == ("g",)
    assert table.column("branches_share") == (1 / 3,)


def test_totals_are_those_of_a_plain_sum() -> None:
    found = gather((RECORDING,), PIE).evidence
    regions, flow = found.program.regions, found.flow
    plain: Counter[str] = Counter()
    for address, count in zip(
        flow.instructions.address.tolist(), flow.executed.tolist(), strict=True
    ):
        for i in range(len(regions)):
            if int(regions.start[i]) <= address < int(regions.end[i]):
                plain[found.names.region(int(regions.parent[i]))] += count
    table = hot_functions(found, None)
    whole = sum(plain.values())
    for row in table.records():
        assert row["instructions_share"] == pytest.approx(plain[row["function"]] / whole)
    assert sum(table.column("instructions_share")) == pytest.approx(1)  # type: ignore[arg-type]


def test_the_limits_of_a_recording_are_noted() -> None:
    found = with_limits(evidence(Sample([LOOP])), is_filtered=True)
    assert any("filtered" in note for note in hot_functions(found).notes)
