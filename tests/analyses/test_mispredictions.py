from __future__ import annotations

import pytest
from builders.evidence import evidence, flags, gather, with_limits
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.mispredictions import mispredictions
from lbr2pgo.model.branch_stacks import TYPE_SHIFT

BACK = (0x1016, 0x1005)


def of(missed: int, predicted: int, branch: tuple[int, int] = BACK) -> tuple[Sample, Sample]:
    return (
        Sample([(*branch, flags(missed=True))], weight=missed),
        Sample([(*branch, flags())], weight=predicted),
    )


def test_the_figures_of_the_standard_text() -> None:
    summary, by_branch, _ = mispredictions(evidence(*of(41_665, 303_391)))
    row = next(summary.records())
    assert (row["predicted"], row["mispredicted"]) == (303_391, 41_665)
    assert round(1 - row["rate"], 2) == 0.88
    assert row["per_thousand"] == pytest.approx(1000 * 41_665 / 345_056)
    assert next(by_branch.records())["address"] == 0x1016


def test_a_branch_never_seen_mispredicted_is_bounded_by_its_sample_size() -> None:
    _, few, _ = mispredictions(evidence(*of(0, 10), *of(1, 0, (0x1006, 0x1010))))
    _, many, _ = mispredictions(evidence(*of(0, 1000), *of(1, 0, (0x1006, 0x1010))))
    low, high = ({r["address"]: r for r in t.records()}[0x1016] for t in (few, many))
    assert low["rate"] == low["rate_low"] == 0
    assert 0.2 < low["rate_high"] < 0.35
    assert 0 < high["rate_high"] < 0.005


def test_most_mispredicted_comes_first() -> None:
    found = evidence(*of(3, 100), *of(5, 0, (0x1006, 0x1010)))
    assert mispredictions(found)[1].column("address") == (0x1006, 0x1016)


def test_per_thousand_counts_among_all_branches() -> None:
    found = evidence(*of(10, 90), *of(0, 900, (0x1006, 0x1010)))
    rows = {row["address"]: row for row in mispredictions(found)[1].records()}
    assert rows[0x1016]["rate"] == 0.1
    assert rows[0x1016]["per_thousand"] == 10


def test_targets_of_one_branch_are_one_branch() -> None:
    found = evidence(*of(1, 1, (0x1020, 0x1040)), *of(2, 0, (0x1020, 0x1050)))
    row = next(mispredictions(found)[1].records())
    assert (row["predicted"], row["mispredicted"]) == (1, 3)


def test_without_prediction_flags_there_is_no_rate() -> None:
    (table,) = mispredictions(evidence(Sample([(*BACK, 0)])))
    assert table.rows == ()
    assert any("does not say which branches were mispredicted" in n for n in table.notes)


def test_entries_that_say_nothing_are_in_no_rate_and_beside() -> None:
    silent = Sample([(*BACK, 0)], weight=6)
    tables = mispredictions(evidence(*of(1, 3), silent))
    assert any("6 entries don't say" in note for note in tables[1].notes)
    told = mispredictions(evidence(*of(1, 3)))
    for table, without in zip(tables[:2], told[:2], strict=True):
        row, other = next(table.records()), next(without.records())
        assert (row["predicted"], row["mispredicted"], row["rate"]) == (3, 1, 0.25)
        assert row == {**other, "prediction_unknown": 6}


def test_a_branch_of_which_nothing_is_known_has_no_rate() -> None:
    found = evidence(*of(1, 1), Sample([(0x1006, 0x1010, 0)], weight=6))
    row = {r["address"]: r for r in mispredictions(found)[1].records()}[0x1006]
    assert (row["predicted"], row["mispredicted"], row["prediction_unknown"]) == (0, 0, 6)
    assert (row["rate"], row["rate_low"], row["rate_high"]) == (None, None, None)


def test_silent_entries_between_others_do_not_make_a_sample_tell_more() -> None:
    """Ten runs of a stack say the same, whether nine of them say nothing or there are no more."""
    said = [(*BACK, flags(missed=True)), (0x1009, 0x1015, flags())]
    silent = [(*BACK, 0), (0x1009, 0x1015, flags())]
    both = [Sample([*said, *silent * 9]) for _ in range(10)] + list(of(0, 10))
    alone = [Sample(said) for _ in range(10)] + list(of(0, 10))
    rows = [
        {r["address"]: r for r in mispredictions(evidence(*each))[1].records()}[0x1016]
        for each in (both, alone)
    ]
    assert rows[0]["rate_high"] == pytest.approx(rows[1]["rate_high"])


@pytest.mark.parametrize("kind", [11, 12, 13], ids=["ERET", "IRQ", "SERROR"])
def test_exceptions_are_in_no_misprediction_table(kind: int) -> None:
    interrupt = Sample([(0x1006, 0x1010, flags(missed=True) | kind << TYPE_SHIFT)], weight=9)
    for table in mispredictions(evidence(*of(1, 1), interrupt))[:2]:
        assert sum(table.column("mispredicted")) == 1
        assert sum(table.column("prediction_unknown")) == 0


def test_no_mispredict_bits_and_all_predicted_differ() -> None:
    summary, *_ = mispredictions(evidence(*of(0, 50)))
    assert summary.rows[0][:4] == (50, 0, 0, 0.0)


def test_that_branches_not_taken_are_unseen_is_said() -> None:
    assert any("Only taken branches" in n for n in mispredictions(evidence(*of(1, 1)))[1].notes)


def test_entries_of_one_sample_count_for_less() -> None:
    def loop(*, missed: bool) -> Sample:
        return Sample([(*BACK, flags(missed=missed)), (0x1009, 0x1015, flags())] * 10)

    alike = evidence(*(loop(missed=missed) for missed in (True, False) for _ in range(10)))
    row = {r["address"]: r for r in mispredictions(alike)[1].records()}[0x1016]
    unknowing = mispredictions(with_limits(alike, has_counts=True))[1].records()
    independent = {r["address"]: r for r in unknowing}[0x1016]
    assert row["rate"] == independent["rate"] == 0.5
    width = row["rate_high"] - row["rate_low"]
    assert width > 2 * (independent["rate_high"] - independent["rate_low"])


def test_lines_add_their_branches_up() -> None:
    found = gather((RECORDING,), PIE).evidence
    summary, by_branch, by_line = mispredictions(found, None)
    assert sum(by_branch.column("mispredicted")) == summary.rows[0][1]
    assert len(set(by_line.column("line"))) == len(by_line)
    assert sum(by_line.column("mispredicted")) == summary.rows[0][1]
    totals: dict[str, int] = {}
    for row in by_branch.records():
        totals[row["line"]] = totals.get(row["line"], 0) + row["mispredicted"]
    for row in by_line.records():
        assert row["mispredicted"] == totals[row["line"]]


def test_branches_on_line_0_have_a_row_of_their_file() -> None:
    """The jumps of the interpreter's computed gotos."""
    by_line = mispredictions(gather((RECORDING,), PIE).evidence, None)[2]
    rows = {row["line"]: row["mispredicted"] for row in by_line.records()}
    assert rows["interp.c:0"] > sum(rows.values()) / 2
    (note,) = (note for note in by_line.notes if "line 0" in note)
    assert note.startswith(f"{rows['interp.c:0']:,} of {sum(rows.values()):,} mispredictions")
