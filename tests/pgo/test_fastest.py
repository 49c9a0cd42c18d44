"""Which build is surely faster than the one that costs least."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.code_size import CodeSize
from lbr2pgo.pgo.fastest import fastest
from lbr2pgo.pgo.goal import GOALS
from lbr2pgo.pgo.measure import CountedRun, Measured


@pytest.mark.parametrize(
    ("goal", "unit", "seconds", "wins"),
    [
        ("speed", 1, [[0.9] * 6], 1),
        ("speed", 0.005, [[0.9] * 6], 0),  # too short
        ("speed", 1, [[0.9] * 3 + [1.1] * 3], 0),
        ("speed", 1, [[0.9] * 7, [0.8] * 7, *[[1.0] * 7] * 3], 2),
        # With five of them, chance makes one be faster six times in eight of a hundred searches.
        ("speed", 1, [[0.9] * 6, *[[1.0] * 6] * 4], 0),
        ("balanced", 1, [[0.9] * 6], 0),  # its code is of four times the size
    ],
)
def test_time_decides_where_it_is_certain(
    goal: str, unit: float, seconds: list[list[float]], wins: int
) -> None:
    run = CountedRun(Totals(1, 1, 0, 0), 0, "")
    times = [[1.0] * len(seconds[0]), *seconds]
    measured = [
        Measured(str(i), run, np.array(each) * unit, CodeSize(4 if i else 1, 1))
        for i, each in enumerate(times)
    ]
    assert fastest(measured, GOALS[goal]) == wins
