"""The table of fresh programs in docs/notes/which-profile.md, of figures that were made by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import fresh

    return fresh


def runs(fresh: Any, *costs: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Instructions of the builds on each input, as many branches, and rounds that take so long."""
    return [
        {
            build: fresh.Run(cost, cost, [cost * noise for noise in range(1, 8)])
            for build, cost in zip(fresh.BUILDS, each, strict=True)
        }
        for each in costs
    ]


def test_a_share_is_of_geometric_means_and_the_last_row_tells_the_mean_and_the_worst(
    fresh: Any,
) -> None:
    text = {"plain": 100, "instrumented": 80, "sampled": 120}
    # sqrt(0.4 · 0.9) = 0.6 and sqrt(0.5 · 0.98) = 0.7: 30 % of 40 %.
    one = fresh.Figures("one", text, runs(fresh, (1000, 400, 500), (2000, 1800, 1960)))
    two = fresh.Figures("two", dict.fromkeys(text, 100), runs(fresh, (1000, 800, 750)))
    none = fresh.Figures("none", dict.fromkeys(text, 100), runs(fresh, (1000, 991, 900)))
    first, second, third, last = fresh.rows([one, two, none])
    assert first == [
        "one", "40.0% / 40.0%", "75%", "75%", "1.200", "1.500",
        "0.700 (0.700 to 0.700)", "1.167 (1.167 to 1.167)",
    ]  # fmt: skip
    assert second[1:6] == ["20.0% / 20.0%", "125%", "125%", "1.000", "1.000"]
    assert third[2:4] == ["-", "-"]
    assert last[2:4] == ["100% ± 35% (75%)"] * 2
    assert last[4:] == ["1.063 (1.200)", "1.145 (1.500)", "0.779 (0.900)", "0.998 (1.167)"]


def test_only_times_of_one_round_are_compared(fresh: Any) -> None:
    slow = fresh.Run(1, 1, [1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0])
    fast = fresh.Run(1, 1, [0.5, 4.5, 0.5, 4.5, 0.5, 4.5, 0.5])
    figures = fresh.Figures("x", {}, [{"plain": slow, "instrumented": fast, "sampled": fast}])
    assert [figures.time(other).low for other in fresh.OTHERS] == [0.5, 1.0]


def test_kept_figures_are_read_as_they_were(fresh: Any, tmp_path: Path) -> None:
    figures = fresh.Figures("x", {"plain": 7}, runs(fresh, (1000, 400, 500)))
    kept = tmp_path / fresh.FIGURES
    kept.write_text(json.dumps(asdict(figures)))
    assert fresh.loaded(kept) == figures


def test_without_times_counts_and_sizes_are_told(fresh: Any) -> None:
    each = {
        build: fresh.Run(cost, cost, [])
        for build, cost in zip(fresh.BUILDS, (9, 6, 5), strict=True)
    }
    first, last = fresh.rows([fresh.Figures("x", dict.fromkeys(fresh.BUILDS, 100), [each])])
    assert first[2:] == ["133%", "133%", "1.000", "1.000", "-", "-"]
    assert last[2:] == ["133% (133%)"] * 2 + ["1.000 (1.000)"] * 2 + ["-", "-"]


def test_times_are_added_to_counts_that_were_kept(
    fresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fresh_programs import Program

    monkeypatch.chdir(tmp_path)
    for build in fresh.BUILDS:
        Path(build).write_text('#!/bin/sh\ntest "$1" = judged\n')
        Path(build).chmod(0o755)
    counted = {build: fresh.Run(7, 5, []) for build in fresh.BUILDS}
    kept = fresh.Figures("x", dict.fromkeys(fresh.BUILDS, 100), [counted])
    Path(fresh.FIGURES).write_text(json.dumps(asdict(kept)))
    study = fresh.Study(Program("x", [], ["train"], ["judged"]))
    assert study.figures(0) == kept
    timed = study.figures(6)
    assert timed.is_timed
    assert fresh.loaded(Path(fresh.FIGURES)) == timed == study.figures(9)
    for run in timed.runs[0].values():
        assert (run.instructions, run.taken, len(run.seconds)) == (7, 5, 6)


def test_programs_are_of_packages_that_are_fetched_and_of_one_group(fresh: Any) -> None:
    for group in fresh.GROUPS.values():
        fetched = {package.name for package in group.packages}
        assert {
            source.split("/")[0] for each in group.programs for source in each.sources
        } <= fetched
    names = [program.name for group in fresh.GROUPS.values() for program in group.programs]
    assert len(names) == len(set(names)) == 40
