from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders.evidence import flags, gather_sources, program, source
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.reports import terminal
from lbr2pgo.reports.build import ReportOptions, make_report, report_of

LOOP, OVER = (0x1016, 0x1005), (0x1006, 0x1010)


def sentences(*samples: Sample, filters: int | None = None) -> tuple[str, ...]:
    gathered = gather_sources([source(*samples, filters=filters)], program())
    return report_of(gathered, ReportOptions((Path("memory"),), Path("toy"))).summary


def test_five_sentences_answer_first(capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report(ReportOptions((RECORDING,), PIE, libraries=False))
    starts = (" ran: 128 samples", "The recording is ", "The hottest function is run",
              "The costliest branch to predict", "There is next to nothing to gain")  # fmt: skip
    assert len(report.summary) == len(starts)
    for sentence, start in zip(report.summary, starts, strict=True):
        assert start in sentence
    terminal.show(report)
    shown = capsys.readouterr().out
    assert shown.index("next to nothing") < shown.index("Hot functions")


def test_the_figures_are_those_of_the_tables() -> None:
    report = make_report(ReportOptions((RECORDING,), PIE, libraries=False))
    functions, misses = report.table("hot-functions"), report.table("mispredictions")
    assert functions is not None
    assert misses is not None
    hot, worst = next(functions.records()), next(misses.records())
    assert f"{hot['instructions_share']:.1%} of the instructions" in report.summary[2]
    assert f"{worst['rate']:.1%} of the times" in report.summary[3]


def test_a_part_of_a_report_has_none() -> None:
    assert (
        make_report(
            ReportOptions((RECORDING,), PIE, libraries=False, only=("hot-functions",))
        ).summary
        == ()
    )
    assert (
        make_report(ReportOptions((RECORDING,), PIE, libraries=False, function="run")).summary == ()
    )


def test_few_samples_are_called_so() -> None:
    assert any("short" in each for each in sentences(Sample([OVER, LOOP])))


def test_what_does_not_fit_the_code_makes_it_poor() -> None:
    wrong = Sample([(0x1016, 0x1005), (0x1000, 0x1040)])
    assert any("poor: 0.0% of 1 fall-through fit" in each for each in sentences(wrong))


def test_a_filtered_recording_says_what_is_not_known() -> None:
    found = sentences(Sample([LOOP], event=0), filters=1 << BRANCH_FILTER_BITS["cond"])
    assert any("what ran between two entries is not known" in each for each in found)


def test_a_rate_of_few_mispredictions_is_not_worth_a_sentence() -> None:
    few = Sample([(*OVER, flags(missed=True)), LOOP], weight=29)
    many = replace(few, weight=30)
    assert not any("costliest" in each for each in sentences(few))
    assert any("costliest" in each for each in sentences(many))


def test_nothing_is_no_trouble() -> None:
    assert not any("hottest" in each or "gain" in each for each in sentences())


def test_a_gain_is_told_with_its_place_only_where_it_is_one() -> None:
    def last(rounds: int) -> str:
        return sentences(Sample([OVER, LOOP]), Sample([LOOP], weight=2 * rounds))[-1]

    assert last(1).startswith("The most to gain")
    assert last(5000).startswith("There is next to nothing to gain")
