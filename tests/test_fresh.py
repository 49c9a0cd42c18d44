"""The tables of fresh programs in docs/notes/which-profile.md, of figures made by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.pgo.timing import NOT_TIMED, Rounds
from lbr2pgo.program.block_map import has_block_map
from lbr2pgo.program.elf.image import Image

INTERP = Path(__file__).parents[1] / "testbins" / "src" / "interp.c"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import fresh

    return fresh


@pytest.fixture
def figures(fresh: Any) -> Any:
    import fresh_figures

    return fresh_figures


@pytest.fixture
def layouts(fresh: Any) -> Any:
    import fresh_layouts

    return fresh_layouts


def runs(figures: Any, *costs: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Instructions of the builds on each input, as many branches, and rounds that take so long."""
    return [
        {
            build: figures.Run(cost, cost, [cost * noise for noise in range(1, 8)])
            for build, cost in zip(figures.BUILDS, each, strict=True)
        }
        for each in costs
    ]


def test_a_share_is_of_geometric_means_and_the_last_row_tells_the_mean_and_the_worst(
    figures: Any,
) -> None:
    text = {"plain": 100, "instrumented": 80, "sampled": 120}
    # sqrt(0.4 · 0.9) = 0.6 and sqrt(0.5 · 0.98) = 0.7: 30 % of 40 %.
    one = figures.Figures("one", text, runs(figures, (1000, 400, 500), (2000, 1800, 1960)))
    two = figures.Figures("two", dict.fromkeys(text, 100), runs(figures, (1000, 800, 750)))
    none = figures.Figures("none", dict.fromkeys(text, 100), runs(figures, (1000, 991, 900)))
    first, second, third, last = figures.rows([one, two, none])
    assert first == [
        "one", "40.0% / 40.0%", "75%", "75%", "1.200", "1.500",
        "0.700 (0.700 to 0.700), p = 0.016", "1.167 (1.167 to 1.167), p = 0.016",
    ]  # fmt: skip
    assert second[1:6] == ["20.0% / 20.0%", "125%", "125%", "1.000", "1.000"]
    assert third[2:4] == ["-", "-"]
    assert last[2:4] == ["100% ± 35% (75%) of 2"] * 2
    assert last[4:] == [
        "1.063 (1.200) of 3", "1.145 (1.500) of 3",
        "0.779 (0.900) of 3, 3 faster, 0 slower", "0.998 (1.167) of 3, 2 faster, 1 slower",
    ]  # fmt: skip


def test_only_times_of_one_round_are_compared_and_what_chance_explains_is_neither(
    figures: Any,
) -> None:
    slow = figures.Run(1, 1, [1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0])
    fast = figures.Run(1, 1, [0.5, 4.5, 0.5, 4.5, 0.5, 4.5, 0.5])
    mixed = figures.Run(1, 1, [0.4, 4.4, 0.4, 4.4, 0.4, 4.4, 0.6])
    for sampled, low, said in (
        (fast, 1.0, "1.000 (1.000) of 1, 0 faster, 0 slower"),
        # Six rounds of seven on one side: 2 · 8 / 2⁷.
        (mixed, 0.8, "0.978 (0.978) of 1, 0 faster, 0 slower"),
    ):
        run = {"plain": slow, "instrumented": fast, "sampled": sampled}
        found = figures.Figures("x", dict.fromkeys(run, 1), [run])
        assert found.time("plain").ratio.low == pytest.approx(low / 2)
        assert found.time("instrumented").ratio.low == pytest.approx(low)
        *_, (*_, beside_plain, beside_counters) = figures.rows([found])
        assert "1 faster" in beside_plain
        assert beside_counters == said
    assert found.time("instrumented").chance == 0.125


def test_kept_figures_are_read_as_they_were(figures: Any, tmp_path: Path) -> None:
    found = figures.Figures("x", {"plain": 7}, runs(figures, (1000, 400, 500)))
    found.keep(tmp_path / "kept.json")
    assert figures.loaded(tmp_path / "kept.json") == found


def test_without_times_counts_and_sizes_are_told(figures: Any) -> None:
    each = {
        build: figures.Run(cost, cost, [])
        for build, cost in zip(figures.BUILDS, (9, 6, 5), strict=True)
    }
    first, last = figures.rows([figures.Figures("x", dict.fromkeys(each, 100), [each])])
    assert first[2:] == ["133%", "133%", "1.000", "1.000", "-", "-"]
    assert last[2:] == ["133% (133%) of 1"] * 2 + ["1.000 (1.000) of 1"] * 2 + ["-", "-"]


def test_what_is_left_is_told_of_all_programs_also_where_there_is_no_share(figures: Any) -> None:
    text = dict.fromkeys(figures.BUILDS, 1)
    found = [
        figures.Figures("x", text, runs(figures, costs))
        for costs in ((1000, 800, 700), (1000, 1000, 900))
    ]
    assert figures.left(found) == (
        "Left of -O2's instructions / taken branches, of 2: counters 0.900 ± 0.141 / 0.900 ± "
        "0.141, pgo 0.800 ± 0.141 / 0.800 ± 0.141."
    )


def scripts(*builds: str) -> None:
    """Builds that end well on input that judges."""
    for build in builds:
        Path(build).write_text('#!/bin/sh\ntest "$1" = judged\n')
        Path(build).chmod(0o755)


def test_times_are_added_to_counts_that_were_kept(
    fresh: Any, figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fresh_programs import Program

    monkeypatch.chdir(tmp_path)
    scripts(*figures.BUILDS)
    counted = {build: figures.Run(7, 5, []) for build in figures.BUILDS}
    kept = figures.Figures("x", dict.fromkeys(figures.BUILDS, 100), [counted])
    kept.keep(Path(fresh.FIGURES))
    study = fresh.Study(Program("x", [], ["train"], ["judged"]))
    assert study.figures(NOT_TIMED) == kept
    timed = study.figures(Rounds(6))
    assert timed.are_timed(figures.BUILDS)
    assert figures.loaded(Path(fresh.FIGURES)) == timed == study.figures(Rounds(9))
    for run in timed.runs[0].values():
        assert (run.instructions, run.taken, len(run.seconds)) == (7, 5, 6)


def test_a_layout_that_comes_later_is_timed_in_the_same_rounds_as_all_others(
    fresh: Any, figures: Any, layouts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fresh_programs import Program

    monkeypatch.chdir(tmp_path)
    laid = layouts.builds_of(["bolt", "bolt-hfsort"])
    assert laid == ["instrumented+bolt", "sampled+bolt", "sampled+bolt-hfsort"]
    names = (*figures.BUILDS, *laid)
    scripts(*names)
    counted = {build: figures.Run(7, 5, [1.0] * 6) for build in names} | {
        laid[-1]: figures.Run(7, 5, [])
    }
    figures.Figures("x", dict.fromkeys(names, 100), [counted]).keep(Path(layouts.KEPT))
    study = fresh.Study(Program("x", [], ["train"], ["judged"]))
    assert study.figures(Rounds(7), ["bolt"]).runs[0]["plain"].seconds == [1.0] * 6
    timed = study.figures(Rounds(7), ["bolt", "bolt-hfsort"])
    assert {len(run.seconds) for run in timed.runs[0].values()} == {7}
    assert not Path(fresh.FIGURES).exists()


def test_layouts_are_told_beside_each_other_and_beside_the_build_below(
    figures: Any, layouts: Any
) -> None:
    costs = {"plain": 1000, "instrumented": 900, "sampled": 800, "instrumented+bolt": 500,
             "sampled+bolt": 400, "sampled+bolt-split-eh": 200}  # fmt: skip
    run = {build: figures.Run(cost, cost, [cost] * 6, cost // 100) for build, cost in costs.items()}
    found = figures.Figures("x", {build: 2 * cost for build, cost in costs.items()}, [run])
    first, _ = figures.rows([layouts.laid_out(found, "bolt")])
    assert first[1:6] == ["50.0% / 50.0%", "120%", "120%", "0.400", "0.800"]
    assert first[-1].startswith("0.800 (0.800 to 0.800), p = 0.03")
    bolt, split = layouts.rows([found], ["bolt", "bolt-split-eh"])
    assert bolt == ["x", "bolt", *["0.500"] * 4, "0.500 (0.500 to 0.500), p = 0.031"]
    assert split[:6] == ["x", "bolt-split-eh", *["0.250"] * 4]


@pytest.mark.slow
def test_builds_are_laid_out_by_what_those_below_were_trained_with(
    fresh: Any, layouts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    tool: Callable[[str], str],
) -> None:  # fmt: skip
    from fresh_programs import Program

    for name in ("clang-22", "ld.lld-22", "llvm-bolt-22", "llvm-profdata-22", "qemu-x86_64"):
        tool(name)
    (tmp_path / "sources").mkdir()
    shutil.copy(INTERP, tmp_path / "sources")
    (tmp_path / "interp").mkdir()
    monkeypatch.chdir(tmp_path / "interp")
    monkeypatch.delenv("LDFLAGS", raising=False)
    study = fresh.Study(Program("interp", ["interp.c"], ["1"], ["2", "3"]))
    names = tuple(layouts.LAYOUTS)
    found = study.figures(NOT_TIMED, names)
    assert set(found.text) == {*fresh.BUILDS, *layouts.builds_of(names)}
    for of in ("taken", "instructions"):
        assert found.cost("sampled+bolt", of) < 1
        assert found.cost("sampled+huge-pages", of, "sampled") == pytest.approx(1, rel=1e-3)
    assert all(run[build].hot_pages for run in found.runs for build in run)
    # By the profile below, and one that was trained for it.
    profiles = {name: Path(f"pgo-sampled+{name}/app.prof").read_bytes() for name in
                ("bolt", "huge-pages", "propeller", "propeller-contexts")}  # fmt: skip
    own = Path("pgo/app.prof").read_bytes()
    assert [name for name, each in profiles.items() if each != own] == ["propeller"]
    assert has_block_map(Image.open("sampled+propeller-contexts"))
    code = [Image.open(f"sampled+{name}").section(".text") for name in ("bolt", "bolt-small-pages")]
    assert [each is not None and each.address % 0x200000 == 0 for each in code] == [True, False]
    before = {path: path.stat().st_mtime_ns for path in Path().glob("*+*")}
    assert study.figures(NOT_TIMED, names) == found
    assert before == {path: path.stat().st_mtime_ns for path in Path().glob("*+*")}


def test_programs_are_of_packages_that_are_fetched_and_of_one_group(fresh: Any) -> None:
    for group in fresh.GROUPS.values():
        fetched = {package.name for package in group.packages}
        assert {
            source.split("/")[0] for each in group.programs for source in each.sources
        } <= fetched
    names = [program.name for group in fresh.GROUPS.values() for program in group.programs]
    assert len(names) == len(set(names)) == 40
