from __future__ import annotations

from builders.loops import MakeLoop

from lbr2pgo.pgo.time_left import TimeLeft

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


def test_a_training_that_is_repeated_changes_nothing_that_is_to_come(loop: MakeLoop) -> None:
    time = TimeLeft(loop(last="rebuild").options)
    steps = (*STEPS[:1], *STEPS[2:4], *STEPS[2:5])
    assert [time.after(*step) for step in steps] == [None, 10, 10, 10, 10, 0]
