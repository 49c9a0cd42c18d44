"""The loss waterfall: what is accepted and what is lost make up what there was."""

from __future__ import annotations

import json

import pytest

from lbr2pgo.model import waterfall
from lbr2pgo.native.walk import Reason
from lbr2pgo.replay.replay import Verdict

TALLY = {
    "samples_read": 100,
    "samples_selected/other_event": 4,
    "samples_selected/other_process": 6,
    "samples_selected": 90,
    "samples_with_stack/no_stack": 0,
    "samples_with_stack": 90,
    "branches_read": 10,
    "branches_in_image/outside": 3,
    "branches_in_image/empty": 3,
    "branches_in_image": 4,
}


def test_a_sound_tally_passes() -> None:
    waterfall.check(TALLY)


@pytest.mark.parametrize("key", TALLY)
def test_any_number_that_is_off_by_one_is_found(key: str) -> None:
    wrong = {**TALLY, key: TALLY[key] + 1}
    with pytest.raises(AssertionError, match=key.split("/")[0].split("_")[0]):
        waterfall.check(wrong)


def test_a_step_that_was_not_taken_is_not_checked() -> None:
    waterfall.check({"samples_read": 5, "branches_read": 7})
    waterfall.check({})


def test_steps_come_in_order_with_the_largest_loss_first() -> None:
    rows = waterfall.rows(TALLY)
    assert [row.step.key for row in rows] == [
        "samples_read", "samples_selected", "samples_with_stack", "branches_read",
        "branches_in_image",
    ]  # fmt: skip
    assert [row.before for row in rows] == [None, 100, 90, None, 10]
    assert [count for _, count in rows[1].losses] == [6, 4]
    assert [reason.title for reason, _ in rows[4].losses] == [
        waterfall.REASONS["empty"].title, waterfall.REASONS["outside"].title,
    ]  # fmt: skip
    assert rows[2].losses == ()


def test_shares() -> None:
    rows = waterfall.rows(TALLY)
    assert [row.share for row in rows] == [None, 0.9, 1.0, None, 0.4]
    nothing = waterfall.rows({"samples_read": 0, "samples_selected": 0})
    assert nothing[1].share is None


def test_tallies_add_up() -> None:
    assert waterfall.merge({"a": 1, "b": 2}, {"b": 3}, {}) == {"a": 1, "b": 5}
    doubled = waterfall.merge(TALLY, TALLY)
    waterfall.check(doubled)
    assert doubled["samples_read"] == 200


def test_scripts_get_the_same_in_json() -> None:
    found = json.loads(json.dumps(waterfall.row_as_json(waterfall.rows(TALLY)[1])))
    assert found == {
        "step": "samples_selected",
        "title": "chosen by event and process",
        "unit": "samples",
        "count": 90,
        "before": 100,
        "share": 0.9,
        "losses": [
            {
                "reason": "of another process",
                "count": 6,
                "cure": waterfall.REASONS["other_process"].cure,
            },
            {
                "reason": "of another event",
                "count": 4,
                "cure": waterfall.REASONS["other_event"].cure,
            },
        ],
        "outside": {},
    }


def test_branches_outside_are_listed_by_file() -> None:
    tally = {
        "branches_read": 9, "branches_in_image": 3, "branches_in_image/outside": 6,
        **waterfall.outside_in({"a.so": 1, "libc.so.6": 4}),
    }  # fmt: skip
    waterfall.check(tally)
    assert waterfall.is_sound(tally)
    *_, row = waterfall.rows(tally)
    assert row.outside == (("libc.so.6", 4), ("a.so", 1))
    assert waterfall.row_as_json(row)["outside"] == {"libc.so.6": 4, "a.so": 1}
    assert not waterfall.is_sound({**tally, **waterfall.outside_in({"b.so": 2})})


def test_every_step_stands_behind_one_of_its_unit() -> None:
    steps = {step.key: step for step in waterfall.STEPS}
    assert len(steps) == len(waterfall.STEPS)
    for number, step in enumerate(waterfall.STEPS):
        if step.after is not None:
            assert steps[step.after] in waterfall.STEPS[:number]


def test_a_step_may_bring_reasons_of_its_own() -> None:
    own = waterfall.Reason("of our own", "nothing")
    step = waterfall.Step("written", "written", "samples", "samples_read", {"own": own})
    tally = {"samples_read": 5, "written": 2, "written/own": 2, "written/empty": 1}
    waterfall.check(tally, (*waterfall.STEPS, step))
    row = waterfall.rows(tally, (*waterfall.STEPS, step))[-1]
    assert row.losses == ((own, 2), (waterfall.REASONS["empty"], 1))
    with pytest.raises(AssertionError, match="written"):
        waterfall.check({**tally, "written": 1}, (step,))


def test_every_verdict_has_a_reason() -> None:
    assert {v.name.lower() for v in Verdict if v is not Verdict.VALID} <= waterfall.REASONS.keys()


def test_every_reason_has_a_title_and_a_cure() -> None:
    for reason in waterfall.REASONS.values():
        assert reason.title
        assert reason.cure
    assert len({reason.title for reason in waterfall.REASONS.values()}) == len(waterfall.REASONS)


def test_all_that_counting_loses_is_tallied() -> None:
    from builders.sources import LAYOUT, MemorySource

    from lbr2pgo.counting.count import count

    tallies = count(MemorySource([]), LAYOUT).counts.tallies
    lost = {key.split("/")[1] for key in tallies if "_in_image/" in key}
    assert lost == {reason.name.lower() for reason in Reason} - {"counted"} | {
        "between_pieces",
        "dropped",
    }
    assert {key.split("/")[1] for key in tallies if "/" in key} <= waterfall.REASONS.keys()
