from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lbr2pgo.pgo.goal import GOALS
from lbr2pgo.pgo.results import AGAIN, PLAIN, Cost, Results


def one(instructions: int, taken: int, cycles: float = 1, code: int = 1) -> Cost:
    return Cost(instructions, taken, cycles, code, 0, "x")


def cost(instructions: int, taken: int, cycles: float = 1, code: int = 1) -> dict[str, Cost]:
    return {"run": one(instructions, taken, cycles, code)}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results.json")
    made.begin("program")
    made.add(PLAIN, cost(1000, 100, 400.0, 10))
    made.add("b", cost(900, 50, 240.0, 8))
    made.add("a", cost(500, 90, 200.0, 30))
    return made


def test_ratios_are_to_the_plain_build_and_cycles_rank(results: Results) -> None:
    assert results.ratios("b", "run") == (0.9, 0.5)
    assert results.priced("b", "run") == (0.6, 0.8)
    assert results.ratio("b", ["run"]) == 0.6
    results.add("0", cost(1, 1, 240.0))  # as good as b: by name
    assert results.ranked(["run"]) == ["a", "0", "b", PLAIN]


@pytest.mark.parametrize(
    ("goal", "ranked"),
    [("speed", ["a", "b", PLAIN]), ("size", ["b", PLAIN, "a"]), ("balanced", ["a", "b", PLAIN])],
)
def test_a_goal_may_rank_by_size(
    results: Results, tmp_path: Path, goal: str, ranked: list[str]
) -> None:
    other = Results(tmp_path / "other.json", GOALS[goal])
    other.costs = results.costs
    assert other.ranked(["run"]) == ranked
    if goal == "balanced":  # 2 % fewer cycles are not worth code of twice the size
        other.costs = results.costs | {"c": cost(1, 1, 196.0, 60)}
        assert other.ranked(["run"])[0] == "a"


def test_shares_are_of_what_another_build_saves_over_all_commands(results: Results) -> None:
    assert results.shares("b", "a", ["run"]) == (0.2, 5.0)
    for name, other in ((PLAIN, (1000, 100)), ("a", (995, 50)), ("b", (900, 75))):
        results.add(name, {**results.costs[name], "other": one(*other)})
    assert results.shares("b", "a", ["other"]) == (None, 0.5)
    assert results.shares("b", "a", ["run", "other"]) == (200 / 505, 75 / 60)


def test_what_was_counted_is_measured_as_elsewhere(results: Results) -> None:
    results.add(AGAIN, cost(1001, 100))
    plain, b = (results.measured(name, "run") for name in (PLAIN, "b"))
    assert b.count_ratios(plain)["taken"] == 0.5
    assert plain.spread["instructions"] == pytest.approx(0.001)
    assert b.again is None


def test_the_mean_over_commands_is_geometric(results: Results) -> None:
    for name, other in ((PLAIN, one(1, 1, 10)), ("b", one(1, 1, 20))):
        results.add(name, {**results.costs[name], "other": other})
    assert results.ratio("b", ["run", "other"]) == pytest.approx((0.6 * 2) ** 0.5)


def test_what_does_something_else_is_not_ranked(results: Results) -> None:
    results.add("wrong", {"run": replace(one(1, 1), output="y")})
    results.add("fails", {"run": replace(one(1, 1), exit_code=134)})
    assert results.ranked(["run"]) == ["a", "b", PLAIN]


def test_they_go_on_with_the_same_program_and_begin_anew_with_another(results: Results) -> None:
    file = results._file
    again = Results(file)
    assert again.begin("program")
    assert again.costs == results.costs
    other = Results(file)
    assert not other.begin("another")
    assert other.costs == {}


_HALF = '{"program": "program", "builds": {"a": {"run": {"x": 1}}}}'


@pytest.mark.parametrize("text", ["", "[1]", "null", '{"program": "program"}', _HALF])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    results = Results(file)
    assert not results.begin("program")
    results.add(PLAIN, cost(1, 1))
    assert Results(file).begin("program")
