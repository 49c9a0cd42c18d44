"""A search over a real program, once; each test looks at what it left."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.searches import BUILD, COST, options, try_by_hand

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.built_code import same_code
from lbr2pgo.pgo.goal import GOALS
from lbr2pgo.pgo.kinds import INSTRUMENTED, ProfileKind
from lbr2pgo.pgo.measure import CountedRun, Measured, candidate_of, count
from lbr2pgo.pgo.results import AGAIN, PLAIN
from lbr2pgo.pgo.search import Search
from lbr2pgo.pgo.source_trees import Trees
from lbr2pgo.pgo.steps import SayOver, Title
from lbr2pgo.pgo.timing import Rounds, sign_test
from lbr2pgo.pgo.training import Training
from lbr2pgo.program.block_map import has_block_map
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError

INTERP = Path(__file__).parents[2] / "testbins" / "src" / "interp.c"
pytestmark = pytest.mark.slow

SIX = {"lines", "probes", "contexts", "lines-O1", "probes-O1", "contexts-O1"}


def over(said: list[str]) -> SayOver:
    """Keeps what came of each step beside its name."""

    def say(title: str, seconds: float, left: float | None, found: str = "") -> None:
        said.append(f"{title}: {found}" if found else f"{title}")

    return say


SILENT = (lambda line: None), (lambda *step: None)


@pytest.fixture(scope="module")
def searched(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, Search, ProfileKind | None, list[str]]]:
    """Where, the search over two trees, its winner, and what it said."""
    for name in ("clang-22", "ld.lld-22", "qemu-x86_64", "llvm-bolt-22", "llvm-profdata-22"):
        if shutil.which(name) is None:
            pytest.skip(f"no {name}")
    folder = tmp_path_factory.mktemp("search")
    shutil.copy(INTERP, folder)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS"):
            patch.delenv(name, raising=False)
        # Named by its whole path, as CMake and Meson do.
        build = BUILD.replace("interp.c", "$PWD/interp.c")
        search = Search(
            options(build=build, jobs=2, bolt=True, instrumented=True), said.append, over(said)
        )
        yield folder, search, search.run(), said


Searched = tuple[Path, Search, ProfileKind | None, list[str]]


def refined(search: Search) -> dict[str, ProfileKind]:
    """What was counted by refined profiles, before it was laid out."""
    kinds = {name: search.ranking.kinds[name] for name in search.results.names if name != PLAIN}
    return {name: kind for name, kind in kinds.items() if kind.refined and not kind.layout}


def test_every_kind_is_counted_and_the_best_two_are_laid_out(searched: Searched) -> None:
    _, search, _, said = searched
    laid_out = {name for name in search.results.costs if name.endswith("+bolt")}
    tried = (
        set(search.results.costs)
        - laid_out
        - set(refined(search))
        - {PLAIN, AGAIN, INSTRUMENTED.name}
    )
    assert {"lines", "probes", "contexts"} <= tried <= SIX
    assert "instrumented+bolt" in laid_out
    # Of builds that flags have not changed, one is enough.
    kinds = (search.ranking.kinds[name] for name in laid_out)
    assert len({search.variants.build_of(kind.unlaid).read_bytes() for kind in kinds}) == 3
    assert len(laid_out) == 3
    assert search.left_out == {}
    # And instrumented, three that are laid out, the plain build, and what is held back.
    over = [line for line in said if not isinstance(line, Title)]
    assert len(over) == len(tried) + len(refined(search)) + 6
    assert over[0] == "1. plain"
    assert over[-1].endswith("what had no part in the choice")
    assert all(re.match(r"\d+\. \S+: (costs \S+% (less|more)|the same code)", line)
               for line in over[1:-1])  # fmt: skip


def test_what_changes_no_code_is_not_counted(searched: Searched) -> None:
    _, search, _, said = searched
    same = [re.fullmatch("\\d+. (\\S+): the same code as (\\S+)", line) for line in said]
    pairs = [(found[1], found[2]) for found in same if found]
    assert pairs
    assert len(pairs) < len(said) - 1
    for one, other in pairs:
        builds = [search.variants.build_of(search.ranking.kinds[name]) for name in (one, other)]
        assert same_code(*builds)
        assert search.results.costs[one]["./app 2"] == search.results.costs[other]["./app 2"]


def test_the_winner_is_counted_on_an_input_that_had_no_part(searched: Searched) -> None:
    _, search, best, _ = searched
    assert best is not None
    counted = {name for name, costs in search.results.costs.items() if "./app 3" in costs}
    other = search.ranking.yardstick(best)
    assert other is not None
    assert counted == {PLAIN, AGAIN, best.name, other.name}
    again = count(candidate_of("./app 3", Path("app"), search.variants.build_of(best)))
    kept = search.results.costs[best.name]["./app 3"]
    assert again.totals.taken == pytest.approx(kept.taken, rel=1e-3)


def test_a_winner_that_does_something_else_there_is_passed_over(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, search, best, _ = searched
    assert best is not None
    costs = {name: dict(each) for name, each in search.results.costs.items()}
    costs[best.name]["./app 3"] = replace(costs[best.name]["./app 3"], output="another")
    monkeypatch.setattr(search.results, "costs", costs)
    monkeypatch.setattr(search.results, "_file", Path("elsewhere"))
    second = search._confirmed()
    assert second not in (None, best)


def test_the_instrumented_build_is_what_others_are_compared_with(searched: Searched) -> None:
    _, search, best, _ = searched
    assert best is not None
    assert best.is_sampled
    other = search.ranking.yardstick(best)
    assert other is not None
    assert (other.told_by, other.layout) == ("instrumented", best.layout)
    # Without a yardstick of its own layout, the unlaid one does.
    assert search.ranking.yardstick(replace(best, layout="propeller")) == INSTRUMENTED
    build = search.variants.build_of(INSTRUMENTED)
    measured = count(candidate_of("./app 2", Path("app"), build))
    kept = search.results.costs["instrumented"]["./app 2"]
    assert measured.totals.taken == pytest.approx(kept.taken, rel=1e-3)
    assert kept.taken < 0.99 * search.results.costs[PLAIN]["./app 2"].taken
    # Were it the cheapest of all, it would still not be taken.
    costs = search.results.costs
    try:
        search.results.costs = {**costs, "instrumented": costs["instrumented"] | {
            "./app 2": replace(kept, cycles=1)
        }}  # fmt: skip
        assert search.ranking.best() == best
    finally:
        search.results.costs = costs


def test_every_kind_near_the_best_is_refined_in_every_way(searched: Searched) -> None:
    _, search, _, _ = searched
    costs = {name: search.results.ratio(name, ["./app 2"]) for name in search.results.names}
    found = refined(search)
    assert all(search.results.behaves(name) for name in found)
    least = min(costs[name] for name in SIX & costs.keys())
    near = {name for name in SIX & costs.keys() if costs[name] <= least * 1.01}
    bases = {replace(kind, refined=()).name for kind in found.values()}
    assert bases <= near
    # Of those that have the same code, one is enough.
    digests = {search.ranking.digest(search.ranking.kinds[name]) for name in near}
    assert {search.ranking.digest(search.ranking.kinds[name]) for name in bases} == digests
    for base in bases:
        singly = {kind.name: kind for kind in search.ranking.kinds[base].refinements()}
        own = {name: kind for name, kind in found.items() if kind.unrefined.name == base}
        assert {name for name, kind in own.items() if len(kind.refined) == 1} == set(singly)
        together = search.ranking.kinds[base].together(
            kind for name, kind in singly.items() if costs[name] < costs[base]
        )
        assert together is None or together.name in own


def test_the_best_is_refined_until_that_helps_nothing(searched: Searched) -> None:
    """What is less by 0.1 % is no better: of those, the first that was tried is the best."""
    _, search, _, _ = searched
    compiled = [kind.name for kind in search.ranking.kinds.values() if not kind.layout]
    ranked = search.results.ranked(["./app 2"], [PLAIN, *compiled])
    most = search.results.ratio(ranked[0], ["./app 2"]) * 1.001
    near = [name for name in ranked if search.results.ratio(name, ["./app 2"]) <= most]
    best = search.ranking.kinds[min(near, key=compiled.index)]
    assert {kind.name for kind in best.refinements()} <= search.ranking.kinds.keys()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search by hand."""
    monkeypatch.chdir(tmp_path)
    Path("work").mkdir()


def by_hand(search: Search, cycles: Callable[[ProfileKind], float]) -> None:
    """Try all that it would, if builds cost so much and all have other code."""
    search.ranking.digest = lambda kind: kind.name
    search.results.costs[PLAIN] = {"./app 2": COST}
    try_by_hand(search._stages, search.results, cycles)


def test_the_winner_is_in_place_and_costs_what_it_is_said_to(searched: Searched) -> None:
    _, search, best, _ = searched
    assert best is not None
    build = search.variants.build_of(best)
    assert Path("app").read_bytes() == build.read_bytes()
    measured = count(candidate_of("./app 2", Path("app"), build))
    kept = search.results.costs[best.name]["./app 2"]
    assert measured.totals.instructions == pytest.approx(kept.instructions, rel=1e-4)
    least = min(search.results.ratio(each, ["./app 2"]) for each in search.results.names)
    assert search.results.ratio(best.name, ["./app 2"]) <= least * 1.001


def test_what_the_winner_needs_is_said_as_it_was_counted_or_measured(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, search, best, _ = searched
    assert best is not None
    costs = [search.results.costs[name]["./app 3"] for name in (best.name, PLAIN)]
    fewer = 1 - costs[0].taken / costs[1].taken
    assert search.shown == "./app 3"
    assert f" {fewer:.1%} fewer taken branches than the plain build; not" in search.change(best)
    names = [str(search.variants.build_of(kind)) for kind in (ProfileKind("lines"), best)]
    runs = [CountedRun(Totals(taken, taken, 0, 0), 0, "") for taken in (8, 4)]
    measured = [Measured(*row, np.full(6, 1.0)) for row in zip(names, runs, strict=True)]
    monkeypatch.setattr(search, "measured", measured)
    assert search.change(best) == (
        "needs 50.0% fewer instructions and 50.0% fewer taken branches than the plain build; "
        "noise: 0.0% more user time (1.000, 1.000 to 1.000, p = 1)"
    )


@pytest.mark.parametrize(("seconds", "wins"), [(0.9, 1), (1.0, 0)])
def test_of_what_costs_the_same_time_decides(
    monkeypatch: pytest.MonkeyPatch, seconds: float, wins: int
) -> None:
    usual = options()
    search = Search(replace(usual, loop=replace(usual.loop, runs=Rounds(6))), *SILENT)
    by_hand(search, lambda kind: 0.9)
    rivals = [*search.ranking.kinds.values()][:2]
    run = CountedRun(Totals(1, 1, 0, 0), 0, "")
    measured = [Measured(str(each), run, np.full(6, each)) for each in (2.0, 1.0, seconds)]
    monkeypatch.setattr(search, "_rivals", lambda kind: rivals)
    monkeypatch.setattr(search, "_timed", lambda kinds: measured)
    assert search._fastest(rivals[0]) == rivals[wins]
    assert search.is_by_time == bool(wins)


@pytest.mark.usefixtures("folder")
def test_times_of_the_fastest_of_six_can_be_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = options(tests=("true",), confirm=())
    search = Search(replace(usual, loop=replace(usual.loop, runs=Rounds(precision=0.5))), *SILENT)
    search.variants.plain.parent.mkdir(parents=True)
    shutil.copy("/bin/true", search.variants.plain)
    chosen: list[Rounds] = []
    monkeypatch.setattr(
        "lbr2pgo.pgo.search.measure", lambda _, runs, front_end: chosen.append(runs) or []
    )
    search._timed([None])
    (runs,) = chosen
    assert runs.precision == 0.5
    assert sign_test(np.full(runs.fewest, 0.9)) / 2 * 5 <= 0.05


def test_counts_of_another_front_end_or_goal_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = set()
    for model, goal in (("", "speed"), ("zen4", "speed"), ("", "size")):
        one = options()
        loop = replace(one.loop, model=model, goal=GOALS[goal])
        search = Search(replace(one, loop=loop), *SILENT)
        search.variants.plain.parent.mkdir(parents=True, exist_ok=True)
        search.variants.plain.write_bytes(b"program")
        found |= {search._what_is_counted()}
    assert len(found) == 3


@pytest.mark.usefixtures("folder")
def test_the_best_of_each_kind_is_timed_where_it_costs_little_more() -> None:
    search = Search(options(confirm=()), *SILENT)
    costs = {"contexts": 0.80, "contexts-O1": 0.805, "probes": 0.82, "lines": 0.83}

    def cycles(kind: ProfileKind) -> float:
        """Late inlining alone pays, and that not enough; lines cost 3.75 % more than the best."""
        pays = kind.unrefined.name == "contexts-O1" and "late" in kind.refined
        return costs.get(kind.unrefined.name, 0.9) - 0.002 * pays

    by_hand(search, cycles)
    found = [search.ranking.kinds[name] for name in ("contexts", "contexts-O1-late", "probes")]
    assert search._rivals(found[0]) == found
    search.ranking.digest = lambda kind: kind.name.removesuffix("-O1-late")
    assert search._rivals(found[0]) == [found[0], found[2]]


@pytest.mark.usefixtures("folder")
def test_no_more_than_six_are_timed() -> None:
    search = Search(options(bolt=True, confirm=()), *SILENT)
    by_hand(search, lambda kind: 0.9)
    found = search._rivals(search.ranking.kinds["lines"])
    assert len(found) == len({kind.unrefined for kind in found}) == 6


def test_what_does_something_else_where_it_had_no_part_is_not_timed(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, search, best, _ = searched
    assert best is not None
    monkeypatch.setattr(search.results, "_file", Path("elsewhere"))
    costs = {name: dict(each) for name, each in search.results.costs.items()}
    monkeypatch.setattr(search.results, "costs", costs)
    rivals = search._rivals(best)
    assert rivals[0] == best
    assert len({search.ranking.digest(kind) for kind in rivals}) == len(rivals) > 1
    assert all("./app 3" in costs[kind.name] for kind in rivals)
    yardsticks = {search.ranking.yardstick(kind) for kind in rivals}
    assert len(yardsticks) > 1  # of both layouts: any may win by its time, and is compared with its
    assert all(each is not None and "./app 3" in costs[each.name] for each in yardsticks)
    costs[rivals[1].name]["./app 3"] = replace(costs[best.name]["./app 3"], output="another")
    assert rivals[1] not in search._rivals(best)


BUILD_SYSTEMS = {
    "clang": ("", "clang-22 --config={config} -fuse-ld=lld -Werror {source} -o {folder}/app"),
    "make": (
        "{folder}/app: {source}; $(CC) -O2 -fuse-ld=lld -Werror $< -o $@",
        "make -f {folder}/Makefile CC='clang-22 --config={config}'",
    ),
    "cmake": (
        "cmake_minimum_required(VERSION 3.16)\nproject(app C)\nadd_executable(app {source})",
        "cmake -S {folder} -B {folder} -DCMAKE_C_COMPILER=clang-22 "
        "'-DCMAKE_C_FLAGS=--config={config} -O2 -fuse-ld=lld' && cmake --build {folder}",
    ),
    "meson": (
        "project('app', 'c')\nexecutable('app', '{source}')",
        "CC=clang-22 {meson} setup {folder}/out {folder} --buildtype=plain "
        "-Dc_link_args=-fuse-ld=lld -Dc_args='--config={config} -O2' && ninja -C {folder}/out "
        "&& cp {folder}/out/app {folder}/app",
    ),
}
"""A build file, and the command that hands the flags over, as docs/builds.md says."""
BUILD_FILES = {"cmake": "CMakeLists.txt", "meson": "meson.build"}


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_any_build_reads_the_winners_flags_from_a_file(
    searched: Searched, build_system: str
) -> None:
    _, search, best, _ = searched
    assert best is not None
    folder = Path(build_system)
    folder.mkdir()
    where = {
        "config": search.config, "folder": folder, "source": Path("interp.c").absolute(),
        "meson": f"{sys.executable} -m mesonbuild.mesonmain",
    }  # fmt: skip
    source, command = (text.format(**where) for text in BUILD_SYSTEMS[build_system])
    (folder / BUILD_FILES.get(build_system, "Makefile")).write_text(f"{source}\n")
    subprocess.run(command, shell=True, check=True)
    app = folder / "app"
    measured = count(candidate_of(f"./{app} 2", app, app))
    made = search.results.costs[best.unlaid.name]["./app 2"]
    assert measured.totals.taken == pytest.approx(made.taken, rel=0.001)


def test_the_command_that_is_told_does_the_same_alone(searched: Searched) -> None:
    _, search, _, _ = searched
    kind = ProfileKind("probes")
    command = search.variants.command(kind).replace(
        "--binary app", "--binary app --to-step rebuild"
    )
    subprocess.run(f"{sys.executable} -m lbr2pgo pgo {command}", shell=True, check=True)
    alone = count(candidate_of("./app 2", Path("app"), search.variants.build_of(kind)))
    kept = search.results.costs[kind.name]["./app 2"]
    assert alone.totals.taken == pytest.approx(kept.taken, rel=1e-3)


def test_what_was_counted_is_not_counted_again(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, search, best, _ = searched
    said: list[str] = []
    build = BUILD.replace("interp.c", "$PWD/interp.c")
    again = Search(options(build=build, bolt=True), said.append, over(said))
    counted = list[str]()
    monkeypatch.setattr(again, "_cost", lambda text, build: counted.append(text))
    assert again.run() == best
    assert counted == []
    assert best is not None
    assert again.ranking.yardstick(best) is None  # it was not asked for this time
    steps = [line.split(": ")[0] for line in said]
    assert steps == [
        "1. plain", "   goes on with what an earlier search has counted", "1. plain",
        "2. lines", "2. lines",  # it lay beside the plain build, which was made anew
        "3. what had no part in the choice", "3. what had no part in the choice",
    ]  # fmt: skip
    assert again.results.costs == search.results.costs


def test_another_program_is_searched_anew_and_a_spent_budget_leaves_the_rest_out(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    shutil.copy(INTERP, tmp_path)
    search = Search(options(), *SILENT)
    search._build_plain()
    search = Search(options(budget=-1.0), *SILENT)
    search.results.begin(search.results._program)
    search._go_through(
        [ProfileKind("lines"), ProfileKind("probes")], Trees(tmp_path, tmp_path / "trees", 1)
    )
    assert search.left_out == dict.fromkeys(("lines", "probes"), "the budget was spent")
    Path("interp.c").write_text(
        INTERP.read_text().replace("return 0", "return 1 - 1", 1) + "int x;"
    )
    later = Search(options(), *SILENT)
    later._build_plain()
    assert set(later.results.costs) == {PLAIN, AGAIN}


def test_a_layout_that_is_asked_for_has_time_of_its_own() -> None:
    search = Search(options(budget=100.0, bolt=True), *SILENT)
    search._slowest = 20.0
    lines, laid_out = ProfileKind("lines"), ProfileKind("lines", layout="bolt")
    found = [search._deadline(kind) for kind in (lines, laid_out)]
    assert None not in found
    assert found[1] - found[0] == pytest.approx(40)  # type: ignore[operator]
    search._slowest = 70.0  # and half of it is for what is laid out
    assert search._deadline(lines) == pytest.approx(found[1] - 50)  # type: ignore[operator]
    plain = Search(options(budget=100.0), *SILENT)
    assert plain._deadline(lines) == plain._deadline(laid_out)
    assert Search(options(), *SILENT)._deadline(lines) is None


@pytest.mark.parametrize(
    ("tests", "confirm", "judges", "held_back"),
    [
        ("abcdefg", "", "abdeg", "cf"),
        ("ab", "", "ab", ""),
        ("ab", "c", "ab", "c"),
        ("abc", "a", "bc", "a"),
        ("", "c", ("./app 1",), "c"),
    ],
)
def test_every_third_test_is_held_back(
    tests: str, confirm: str, judges: tuple[str, ...], held_back: str
) -> None:
    given = options(tests=tuple(tests), confirm=tuple(confirm))
    assert given.judges == tuple(judges)
    assert given.held_back == tuple(held_back)


def test_a_kind_whose_build_fails_is_left_out_with_its_reason(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    shutil.copy(INTERP, tmp_path)
    refuses = f"case $CFLAGS in *pseudo-probe*) echo no probes here; exit 1; esac; {BUILD}"
    search = Search(options(build=refuses), *SILENT)
    best = search.run()
    assert set(search.left_out) == {"probes", "contexts"}
    assert "exit code 1" in search.left_out["probes"]
    assert set(search.results.costs) >= {PLAIN, "lines"}
    assert best is None or best.told_by == "lines"


TAKES_PROFILES = "$(echo $CFLAGS | grep -o -- '-fp[^ ]*')"
"""A build that takes no flags but these."""
BREAKS_RESTRICT = """
#include <stdio.h>
__attribute__((noinline)) static int next(int *from, int *restrict to, int n) {
  for (int i = 0; i < n; i++) to[i] = from[i] + 1;
  return from[n];
}
int main(int argc, char **argv) {
  int data[64] = {argc}, sum = 0;
  for (int i = 0; i < 2000; i++) sum += next(data, data + 1, 62);
  printf("%d\\n", sum);
#ifdef FAILS
  return 3;
#endif
}
"""


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("clang-22 -O2 $CFLAGS", "does not do the same as the build without a profile"),
        (f"/usr/bin/clang-22 -O2 -g {TAKES_PROFILES} -Wl,--build-id", "it is the same with -O1"),
    ],
    ids=["undefined behaviour at -O1", "flags that reach nothing"],
)
def test_kinds_that_fail_are_left_out_with_their_reasons_and_the_rest_is_tried(
    tmp_path: Path,
    tool: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    compiler: str,
    reason: str,
) -> None:
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    Path("app.c").write_text(BREAKS_RESTRICT)
    fails = 'case "$CFLAGS" in *pseudo-probe*) FAILS=-DFAILS;; esac'
    build = f"{fails}; {compiler} $FAILS app.c $LDFLAGS -o app"
    given = options(build=build, tests=("./app 1 2",))
    search = Search(given, *SILENT)
    search.run()
    failed = search.left_out
    assert reason in failed.pop("lines-O1")
    assert failed.keys() == {"probes", "contexts"}
    assert all("the training run failed with exit code 3" in why for why in failed.values())
    assert {PLAIN, "lines", "lines-cold"} <= set(search.results.costs)


def test_builds_are_compared_with_one_that_has_nothing_of_propeller(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    shutil.copy(INTERP, tmp_path)
    given = options()
    search = Search(replace(given, loop=replace(given.loop, propeller=True)), *SILENT)
    search._build_plain()
    lines = ProfileKind("lines")
    search._go_through([lines, replace(lines, layout="propeller")], Trees(tmp_path, tmp_path, 1))
    assert search.left_out == {}
    assert not has_block_map(Image.open(search.variants.plain))


@pytest.mark.parametrize("layout", ["bolt", "propeller"])
def test_what_is_recorded_poorly_is_left_out_of_what_is_laid_out(
    layout: str, tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("clang-22"), tool("qemu-x86_64"), tool("llvm-bolt-22")
    monkeypatch.chdir(tmp_path)
    shutil.copy(INTERP, tmp_path)
    given, one = options(), Training(("./app 2",), 500_009, True)  # a single sample
    loop = replace(given.loop, train=one, **{layout: True})  # type: ignore[arg-type]
    search = Search(replace(given, loop=loop), *SILENT)
    search._build_plain()
    lines, trees = ProfileKind("lines"), Trees(tmp_path, tmp_path / "trees", 1)
    search._go_through([lines, replace(lines, layout=layout)], trees)
    assert search.left_out.keys() == {f"lines+{layout}"}
    reason = search.left_out[f"lines+{layout}"]
    assert "log: not laid out, the recording is of little use: at least " in reason


def test_a_start_is_judged_by_no_search() -> None:
    given = options()
    with pytest.raises(InputError, match="not by how a program starts"):
        replace(given, loop=replace(given.loop, startup=True))


@pytest.mark.parametrize("clones", [False, True])
def test_builds_of_a_search_have_the_layout_that_is_asked_for(clones: bool) -> None:
    usual = options()
    loop = replace(usual.loop, propeller=True, clone_paths=clones)
    search = Search(replace(usual, loop=loop), *SILENT)
    words = search.variants.command(INSTRUMENTED).split()
    assert "--propeller" in words
    assert ("--propeller-clone-paths" in words) == clones


@pytest.mark.parametrize(
    ("change", "said"), [({"jobs": 0}, "0 jobs"), ({"jobs": 2, "binary": "/tmp/app"}, "every copy")]
)
def test_senseless_options_are_refused(change: dict[str, object], said: str) -> None:
    given = options()
    binary = Path(str(change.pop("binary", "app")))
    with pytest.raises(InputError, match=said):
        replace(given, loop=replace(given.loop, binary=binary), **change)  # type: ignore[arg-type]
