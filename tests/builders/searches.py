"""Searches: their options in tests, and what they would try if builds cost what they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lbr2pgo.pgo.kinds import ProfileKind
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.ranking import Ranking
from lbr2pgo.pgo.results import PLAIN, Cost, Results
from lbr2pgo.pgo.search_options import SearchOptions
from lbr2pgo.pgo.stages import Stages
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.training import Training

BUILD = "clang-22 $CFLAGS interp.c -fuse-ld=lld $LDFLAGS -o app"
TRAINING = Training(("./app 1",), 1009, True)
COST = Cost(instructions=1, taken=1, cycles=1e6, code=1, exit_code=0, output="")


def options(**changes: object) -> SearchOptions:
    """Of a search over the interpreter, trained with 1, judged by 2 and confirmed by 3."""
    loop = LoopOptions(
        build=str(changes.pop("build", BUILD)), binary=Path("app"), train=TRAINING, profile=None,
        probes=False, bolt=bool(changes.pop("bolt", False)), measure=None, runs=NOT_TIMED,
        work=Path("work"), instrumented=bool(changes.pop("instrumented", False)),
    )  # fmt: skip
    plain = {"tests": ("./app 2",), "confirm": ("./app 3",), "budget": None, "jobs": 1}
    return SearchOptions(loop, **{**plain, **changes})  # type: ignore[arg-type]


def empty_ranking() -> tuple[Results, Ranking]:
    """Of kinds whose code is all different; the plain build is counted."""
    results = Results(Path("nowhere"))
    results.costs[PLAIN] = {"./app 2": COST}
    return results, Ranking(results, ["./app 2"], lambda kind: kind.name)


def try_by_hand(
    stages: Stages, results: Results, cycles: Callable[[ProfileKind], float]
) -> list[list[str]]:
    """What each stage tries, if builds cost so much of the plain one's cycles."""
    tried = []
    for _, chains in stages:
        kinds = [kind for chain in chains for kind in chain]
        tried.append([kind.name for kind in kinds])
        for kind in kinds:
            cost = replace(COST, cycles=COST.cycles * cycles(kind))
            results.costs[kind.name] = {"./app 2": cost}
    return tried
