from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders.pages import unpacked
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING

from lbr2pgo.cli import main
from lbr2pgo.reports import page
from lbr2pgo.reports.build import ReportOptions
from lbr2pgo.reports.compare import make_comparison

WORDS = ["report", str(RECORDING), "--binary", str(PIE)]
AGAINST = ["--against", str(STATIC_RECORDING), "--old-binary", str(STATIC)]


def test_it_says_first_what_changed() -> None:
    report = make_comparison(
        ReportOptions((RECORDING,), PIE, libraries=False), [STATIC_RECORDING], STATIC
    )
    assert len(report.summary) == 5
    assert report.profiles[1] == f"{STATIC_RECORDING} (old)"


def test_charts_lie_over_each_other() -> None:
    report = make_comparison(
        ReportOptions((RECORDING,), PIE, libraries=False), [STATIC_RECORDING], STATIC
    )
    chart = page.charts(report, page.PageTexts())[0]
    before = report.timings[0].before
    assert before is not None
    assert chart["before"] is not None
    assert len(chart["cycles"]) == len(chart["rate"]) == len(chart["before"])  # type: ignore[arg-type]
    assert list(chart["cycles"]) == sorted(chart["cycles"])  # type: ignore[call-overload]
    for name, timing in (("rate", report.timings[0]), ("before", before)):
        told = [rate for rate in chart[name] if rate is not None]  # type: ignore[attr-defined]
        assert 0.98 < sum(told) <= 1.0001
        assert len(told) <= len(timing.cycles)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, *AGAINST, "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    names = [table["name"] for table in report["tables"]]
    assert names == [f"changes-{name}" for name in (
        "functions", "lines", "layout", "outcomes", "mispredictions", "latency")]  # fmt: skip
    assert main([*WORDS, *AGAINST, "--html", str(tmp_path / "x.html")]) == 0


def test_a_page_of_one_analysis_shows_functions_all_the_same(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    assert main([*WORDS, *AGAINST, "--only", "stack-ends", "--html", str(page)]) == 0
    assert '"code"' in unpacked(page.read_text())


def test_an_old_recording_of_another_build_is_refused() -> None:
    assert main([*WORDS, "--against", str(STATIC_RECORDING)]) == 2


def test_exports_of_code_hold_no_comparison(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, *AGAINST, "--format", "speedscope"]) == 2
    assert "no comparison" in capfd.readouterr().err
