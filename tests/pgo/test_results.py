from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.pgo.results import PLAIN, Cost, Results


def cost(instructions: int, taken: int, output: str = "x") -> dict[str, Cost]:
    return {"run": Cost(instructions, taken, 0, output)}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results.json")
    made.begin("program")
    made.add(PLAIN, cost(1000, 100))
    made.add("b", cost(900, 50))
    made.add("a", cost(500, 90))
    return made


def test_ratios_are_to_the_plain_build_and_rank_by_both_together(results: Results) -> None:
    assert results.ratios("b", "run") == (0.9, 0.5)
    assert results.ratio("b", ["run"]) == pytest.approx(0.45)
    results.add("c", cost(450, 100))  # as good as b and a: by name
    assert results.ranked(["run"]) == ["a", "b", "c", PLAIN]


def test_shares_are_of_what_another_build_saves_over_all_commands(results: Results) -> None:
    assert results.shares("b", "a", ["run"]) == (0.2, 5.0)
    for name, other in ((PLAIN, (1000, 100)), ("a", (995, 50)), ("b", (900, 75))):
        results.add(name, {**results.costs[name], "other": Cost(*other, 0, "")})
    assert results.shares("b", "a", ["other"]) == (None, 0.5)
    assert results.shares("b", "a", ["run", "other"]) == (200 / 505, 75 / 60)


def test_the_mean_over_commands_is_geometric(results: Results) -> None:
    for name, other in ((PLAIN, Cost(10, 10, 0, "")), ("b", Cost(20, 10, 0, ""))):
        results.add(name, {**results.costs[name], "other": other})
    assert results.ratio("b", ["run", "other"]) == pytest.approx((0.45 * 2) ** 0.5)


def test_what_does_something_else_is_not_ranked(results: Results) -> None:
    results.add("wrong", cost(1, 1, "y"))
    results.add("fails", {"run": Cost(1, 1, 134, "x")})
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
