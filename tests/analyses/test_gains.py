from __future__ import annotations

import pytest
from builders.evidence import evidence
from builders.recordings import PIE
from builders.sources import Sample

from lbr2pgo.analyses import gains as gains_module
from lbr2pgo.analyses.gains import Gain, GainKind, cold_code, gains
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.process import Part, Process
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import SLOT_SIZE, image_array

LOOP, OVER = (0x1016, 0x1005), (0x1006, 0x1010)


def by_kind(*samples: Sample) -> dict[GainKind, Gain]:
    return {gain.kind: gain for gain in gains(evidence(*samples))}


def test_a_forward_branch_that_mostly_jumps_had_better_be_turned_round() -> None:
    found = by_kind(*[Sample([OVER, LOOP])] * 20)
    assert found[GainKind.LAYOUT] == Gain(GainKind.LAYOUT, 20, 0.5, 0x1006, 1.0)


def test_code_that_never_ran_had_better_not_be_jumped_over() -> None:
    assert by_kind(Sample([OVER, LOOP]))[GainKind.COLD_CODE].saved == 1


def test_code_that_ran_once_is_not_cold() -> None:
    past = Sample([(0x1009, 0x1015), LOOP])
    cold = by_kind(past, *[Sample([(0x1012, 0x1015), OVER, LOOP])] * 9)[GainKind.COLD_CODE]
    assert (cold.saved, cold.largest) == (9, 0x1012)  # over padding; 0x1006 is not among them


def test_a_jump_to_the_next_instruction_skips_nothing() -> None:
    assert gains(evidence(Sample([(0x1012, 0x1015), (0x1006, 0x1010)]))) == [
        Gain(GainKind.COLD_CODE, 2, 1.0, 0x1006, 0.5)
    ]


def test_of_an_indirect_call_the_hottest_target_counts() -> None:
    calls = [Sample([(0x1020, 0x1040)])] * 3 + [Sample([(0x1020, 0x1050)])]
    found = by_kind(*calls)
    assert found[GainKind.PROMOTION] == Gain(GainKind.PROMOTION, 3, 0.75, 0x1020, 1.0)


def test_calls_out_of_the_image_are_not_promoted() -> None:
    assert gains(evidence(Sample([(0x1020, 0x7FFF0000)]))) == []


def test_the_largest_gain_comes_first() -> None:
    found = gains(evidence(Sample([(0x1020, 0x1040)]), *[Sample([OVER, LOOP])] * 30))
    shares = [gain.share for gain in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0, abs=0.1)


def test_nothing_is_cold_where_what_ran_between_branches_is_not_known() -> None:
    samples = [Sample([OVER, LOOP])] * 20
    found = evidence(*samples, filters=1 << BRANCH_FILTER_BITS["cond"])
    assert found.run_notes()
    assert gains(found) == []


def test_libraries_that_nobody_asked_for_are_not_rebuilt() -> None:
    program = Program.open(PIE)
    for is_named, rebuilt in ((False, [True, False]), (True, [True, True])):
        parts = [Part(program, 0, "app"), Part(program, 1, "libapp.so", is_named=is_named)]
        address = image_array([0x1000, SLOT_SIZE + 0x1000])
        assert gains_module._is_rebuilt(Process(parts), address).tolist() == rebuilt


def test_jumps_over_cold_code_are_listed_with_what_they_skip() -> None:
    past = Sample([(0x1009, 0x1015), LOOP])
    table = cold_code(evidence(past, *[Sample([(0x1012, 0x1015), OVER, LOOP])] * 9), None)
    (row,) = table.records()
    assert (row["saved"], row["bytes"]) == (9, 1)
    assert (row["function"], row["address"], row["target_address"]) == ("main", 0x1012, 0x1015)
