from __future__ import annotations

from time import monotonic

import pytest
from builders.loops import MakeLoop

from lbr2pgo.pgo.kinds import SHIPPED, ProfileKind
from lbr2pgo.pgo.time_left import KindsLeft, TimeLeft

STEPS = (
    ("Build without a profile", 10.0), ("Build what is to be recorded", 9.0), ("Train", 30.0),
    ("Convert for the compiler", 2.0), ("Build with the profile", 11.0), ("Train", 20.0),
    ("Convert for BOLT", 1.0), ("Optimise after the link", 3.0), ("Measure", 80.0),
)  # fmt: skip


def test_what_is_left_is_known_once_something_was_built_and_trained(loop: MakeLoop) -> None:
    time = TimeLeft(loop(bolt=True, training_flags=("-O1",)).options)
    found = [time.after(*step) for step in STEPS]
    # Then a build, a training and four runs that are counted are to come.
    assert found[:3] == [None, None, 9 + 5 * 30]
    assert found[3:6] == [9 + 2 + 5 * 30, 2 + 5 * 30, 2 + 4 * 20]
    assert found[6:] == [4 * 20, 4 * 20, 0]


def test_a_step_that_was_not_expected_changes_nothing_that_is_to_come(loop: MakeLoop) -> None:
    time = TimeLeft(loop(last="rebuild").options)
    steps = (*STEPS[:1], *STEPS[2:4], *STEPS[2:5])
    assert [time.after(*step) for step in steps] == [None, 10, 10, 10, 10, 0]


def test_kinds_to_come_are_expected_and_then_known(loop: MakeLoop) -> None:
    left = KindsLeft(loop(bolt=True).options, SHIPPED, 1, None)
    left.begin_stage("shipped", 3)
    assert left.seconds is None
    left.is_over(ProfileKind("lines"), 10.0)
    # Two of this stage, three of training builds, seven refined, all at once, and two laid out.
    assert left.seconds == 10 * (2 + 3 + 7 + 1 + 2)
    left.is_over(ProfileKind("probes"), 20.0)
    left.is_over(ProfileKind("contexts"))
    left.begin_stage("trained", 1)
    left.begin_stage("refined", 0)
    left.begin_stage("combined", 0)
    # Where the best is refined further, only what comes behind that is still expected.
    left.begin_stage("refined", 1)
    assert left.seconds == 15 * (1 + 1 + 2)
    left.begin_stage("laid out", 1)
    assert left.seconds == 15
    left.is_over(ProfileKind("contexts", layout="bolt"), 15.0)
    assert left.seconds == 0


@pytest.mark.parametrize(("compiler", "expected"), [("clang", 1 + 3 + 7 + 1), ("gcc", 1 + 3)])
def test_builds_at_once_take_less_and_gcc_knows_few_kinds(
    loop: MakeLoop, compiler: str, expected: int
) -> None:
    left = KindsLeft(loop(compiler=compiler).options, SHIPPED, 2, None)
    left.begin_stage("shipped", 2)
    left.is_over(ProfileKind("lines"), 10.0)
    assert left.seconds == 10 * expected / 2


def test_no_more_is_left_than_the_budget(loop: MakeLoop) -> None:
    for budget, expected in ((60, 60), (-5, 0)):
        left = KindsLeft(loop().options, SHIPPED, 1, monotonic() + budget)
        left.begin_stage("shipped", 3)
        left.is_over(ProfileKind("lines"), 10.0)
        assert left.seconds == pytest.approx(expected, abs=1)
