from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.profiles.llvm.context_forms import STEPS
from lbr2pgo.profiles.llvm.lacks import NO_LOCATION, NO_PROBE, Lack, tallied
from lbr2pgo.profiles.llvm.located import LOCATED


@pytest.mark.parametrize("reasons", [NO_LOCATION, NO_PROBE])
def test_the_waterfall_shows_every_reason(reasons: dict[Lack, str]) -> None:
    (by_context,) = (step for step in STEPS if step.key == "context_located")
    for step in LOCATED, by_context:
        assert {*reasons.values()} <= step.reasons.keys()


def test_what_lacks_something_is_lost_for_one_reason() -> None:
    lack = np.array([*Lack, Lack.PROBES], np.uint8)
    count = np.uint64(1) << np.arange(len(lack), dtype=np.uint64)
    assert tallied("step", NO_PROBE, lack, count) == {
        "step/no_probe": 2, "step/no_probes": 4 + 16, "step/no_source": 8,
    }  # fmt: skip
