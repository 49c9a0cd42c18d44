"""Which kind is best, by costs that are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders.searches import COST, empty_ranking

from lbr2pgo.pgo.kinds import INSTRUMENTED, ProfileKind
from lbr2pgo.pgo.ranking import Ranking
from lbr2pgo.pgo.results import AGAIN, PLAIN, Cost, Results

LINES, PROBES = ProfileKind("lines"), ProfileKind("probes")


def ranked(costs: dict[str, Cost], *kinds: ProfileKind) -> tuple[Results, Ranking]:
    """Kinds of which a command was counted."""
    results, ranking = empty_ranking()
    ranking.kinds = {kind.name: kind for kind in kinds}
    results.costs |= {name: {"./app 2": cost} for name, cost in costs.items()}
    return results, ranking


@pytest.mark.parametrize(("more", "loss"), [(1.0005, 0.0), (1.01, 0.01)])
def test_what_the_training_would_choose_is_told_if_it_costs_more(more: float, loss: float) -> None:
    results, ranking = ranked({}, LINES, PROBES)
    plain, two, ten = (replace(COST, cycles=cycles) for cycles in (1e6, 2, 10_000))
    one, dear = replace(COST, cycles=1), replace(ten, cycles=10_000 * more)
    results.costs = {
        PLAIN: {"./app 1": plain, "./app 2": plain},
        "probes": {"./app 1": one, "./app 2": dear},
        "lines": {"./app 1": two, "./app 2": ten},
    }
    trained, found = ranking.loss_by(["./app 1"])
    assert trained == PROBES
    assert found == pytest.approx(loss, abs=1e-9)


def test_what_differs_less_than_the_plain_build_from_itself_is_the_same() -> None:
    costs = {
        PLAIN: replace(COST, output="a"),
        AGAIN: replace(COST, cycles=1_002_000, output="b"),
        "probes": replace(COST, cycles=500_000, output="c"),
        "lines": replace(COST, cycles=505_000, output="d"),
    }
    results, ranking = ranked(costs, LINES, PROBES)
    assert results.spread(["./app 2"]) == pytest.approx(0.002)
    assert ranking.best() == LINES
    results.costs[AGAIN] = results.costs[PLAIN]
    assert ranking.best() is None  # now the output of the others tells


def test_counters_are_what_others_are_compared_with_and_never_chosen() -> None:
    costs = {
        "instrumented": replace(COST, cycles=1), "instrumented+bolt": replace(COST, cycles=1),
        "lines": replace(COST, cycles=5e5),
    }  # fmt: skip
    bolted = replace(INSTRUMENTED, layout="bolt")
    _, ranking = ranked(costs, LINES, INSTRUMENTED, bolted)
    assert ranking.best() == LINES
    assert ranking.yardstick(replace(LINES, layout="bolt")) == bolted
    # Without one of its own layout, the unlaid one does.
    assert ranking.yardstick(replace(LINES, layout="propeller")) == INSTRUMENTED


def test_what_only_an_earlier_search_has_met_is_not_chosen() -> None:
    costs = {"lines": replace(COST, cycles=5e5), "probes": replace(COST, cycles=4e5)}
    _, ranking = ranked(costs, LINES)
    assert ranking.best() == LINES
    assert ranking.ranked() == [LINES]
    assert not ranking.is_counted(PROBES)


def test_what_the_compiler_made_is_apart_from_what_is_laid_out() -> None:
    costs = {"lines+bolt": replace(COST, cycles=1), "lines": COST}
    laid_out = replace(LINES, layout="bolt")
    _, ranking = ranked(costs, LINES, laid_out)
    assert ranking.ranked() == [laid_out, LINES]
    assert ranking.compiled() == [LINES]


def test_of_the_same_code_the_first_is_enough() -> None:
    late = replace(LINES, refined=("late",))
    _, ranking = ranked({}, LINES, late, PROBES)
    ranking.digest = lambda kind: kind.told_by
    assert list(ranking.each_code_once([LINES, PROBES, late])) == [LINES, PROBES]
    assert ranking.like(late, [PROBES, LINES]) == LINES
    assert ranking.like(late, [PROBES]) is None
