"""What a search would try, if builds cost what they are told to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders.searches import empty_ranking, options, try_by_hand

from lbr2pgo.pgo.kinds import ProfileKind
from lbr2pgo.pgo.ranking import Ranking
from lbr2pgo.pgo.stages import Stages


def stages_of(cycles: Callable[[ProfileKind], float]) -> tuple[list[list[str]], Ranking]:
    """Names of what each tries, and how that is ranked."""
    results, ranking = empty_ranking()
    return try_by_hand(Stages(options(), ranking), results, cycles), ranking


@pytest.mark.parametrize(("near", "told"), [
    ("lines", ["lines"]), ("probes", ["probes"]), ("contexts", ["probes", "contexts"])
])  # fmt: skip
def test_contexts_have_the_training_build_of_probes(near: str, told: list[str]) -> None:
    cost = {near: 0.8}
    stages, _ = stages_of(lambda kind: cost.get(kind.told_by, 0.9))
    assert stages[1] == [f"{each}-O1" for each in told]


def test_what_was_tried_together_is_not_tried_again_on_top() -> None:
    def cycles(kind: ProfileKind) -> float:
        """Hot and cold pay, but not together."""
        cost = {("hot",): 0.88, ("cold",): 0.89}
        return cost.get(kind.refined, 0.9)

    stages, _ = stages_of(cycles)
    names = [name for stage in stages for name in stage]
    assert "contexts-hot-cold" in stages[3]
    assert "contexts-hot-late" in stages[4]
    assert len(names) == len(set(names))


def test_what_helps_only_on_top_of_what_helped_is_found() -> None:
    pays = (("hot",), ("hot", "cold"), ("hot", "cold", "eager"), ("hot", "cold", "late"))

    def cycles(kind: ProfileKind) -> float:
        """Of probes, which alone are near the best."""
        helped = sum({*ways} <= {*kind.refined} for ways in pays)
        return 0.8 - 0.01 * helped if kind.told_by == "probes" else 0.9

    stages, ranking = stages_of(cycles)
    *_, together, second, _, third, all_that_helped, fourth, nothing, _ = stages
    assert together == []
    assert second == [f"probes-{each}" for each in (
        "exact-hot", "hot-cold", "hot-accurate", "hot-late", "hot-eager", "hot-expected",
        "hot-unprobed",
    )]  # fmt: skip
    assert third == [f"probes-{each}" for each in (
        "exact-hot-cold", "hot-cold-accurate", "hot-cold-late", "hot-cold-eager",
        "hot-cold-expected", "hot-cold-unprobed",
    )]  # fmt: skip
    assert all_that_helped == ["probes-hot-cold-late-eager"]
    assert len(fourth) == 4
    assert nothing == []
    assert ranking.best() == ranking.kinds["probes-hot-cold-late-eager"]


def test_where_nothing_helps_there_is_one_round() -> None:
    stages, _ = stages_of(lambda kind: 0.9)
    assert len(stages) == 5


def test_what_helps_each_time_ends_with_all_that_there_is() -> None:
    stages, _ = stages_of(lambda kind: 0.9 - 0.01 * len(kind.refined))
    names = [name for stage in stages for name in stage]
    assert len(names) == len(set(names))
    assert "contexts-hot-cold-accurate-late-expected-unprobed" in names
    assert len(stages) == 7


def test_of_what_has_the_same_code_one_is_refined_or_laid_out() -> None:
    results, ranking = empty_ranking()
    ranking.digest = lambda kind: "" if kind.layout else str(kind.has_probes)
    *_, refined, _, laid_out = try_by_hand(
        Stages(options(bolt=True), ranking), results, lambda kind: 0.9
    )
    assert {name.split("-")[0] for name in refined} == {"contexts", "lines"}
    assert laid_out == ["contexts+bolt", "lines+bolt"]


def test_counters_are_laid_out_beside_where_they_were_tried() -> None:
    results, ranking = empty_ranking()
    given = options(bolt=True, instrumented=True)
    first, *_, last = try_by_hand(Stages(given, ranking), results, lambda kind: 0.9)
    assert first == ["lines", "probes", "contexts", "instrumented"]
    assert last[-1] == "instrumented+bolt"
    assert len(last) == 3
