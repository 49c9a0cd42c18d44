from __future__ import annotations

import pytest

from lbr2pgo.analyses.quality import Quality
from lbr2pgo.analyses.quality_verdict import Bounds, Grade, remarks, whole
from lbr2pgo.profiles.reader import ProfileOverlap
from lbr2pgo.profiles.staleness import Staleness


def grade(
    chance: float | None = None,
    density: float | None = None,
    coverage: float | None = None,
    conservation: float | None = None,
    stale: float | None = None,
    overlap: float | None = None,
    missing: float = 0.0,
    executed: float | None = None,
) -> tuple[Grade, int]:
    """The verdict, and how many remarks have a cure that would be said."""
    quality = Quality(
        density,
        coverage,
        conservation,
        None if stale is None else Staleness(stale, missing, ("gone",), ()),
        None if overlap is None else ProfileOverlap(overlap, None, None),
        executed=executed,
        chance=chance,
    )
    said = list(remarks(quality, Bounds()))
    return whole(said), sum(remark.grade is not Grade.GOOD for remark in said)


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        ({}, (Grade.BAD, 0)),
        ({"chance": 0.05, "coverage": 0.8, "conservation": 0.95, "stale": 0.0}, (Grade.GOOD, 0)),
        ({"chance": 0.06, "coverage": 0.8, "stale": 0.0}, (Grade.FAIR, 1)),
        ({"chance": 0.01, "density": 0.5, "coverage": 0.3, "stale": 0.0}, (Grade.GOOD, 0)),
        ({"chance": 0.21, "coverage": 0.7, "stale": 0.0}, (Grade.BAD, 1)),
        ({"chance": 0.01}, (Grade.FAIR, 1)),  # nobody can tell how well it fits
        ({"executed": 0.8}, (Grade.FAIR, 1)),
        ({"executed": 0.4}, (Grade.BAD, 1)),
        ({"conservation": 0.7}, (Grade.FAIR, 1)),
        ({"conservation": 0.5}, (Grade.BAD, 1)),
        ({"stale": 0.0}, (Grade.GOOD, 0)),
        ({"stale": 0.1}, (Grade.GOOD, 0)),
        ({"stale": 0.3}, (Grade.FAIR, 1)),
        ({"stale": 0.4}, (Grade.BAD, 1)),
        ({"stale": 0.6}, (Grade.OTHER_BUILD, 1)),
        ({"stale": 0.6, "missing": 0.5}, (Grade.OTHER_BUILD, 1)),
        ({"chance": 0.01, "stale": 0.6, "missing": 0.51}, (Grade.OTHER_PROGRAM, 1)),
        ({"overlap": 0.6}, (Grade.FAIR, 1)),
        ({"density": 0.0, "coverage": 0.0, "stale": 0.0}, (Grade.BAD, 1)),
    ],
)
def test_the_weakest_side_decides(measures: dict[str, float], expected: tuple[Grade, int]) -> None:
    assert grade(**measures) == expected
