from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.contexts import _unwinder
from lbr2pgo.evidence.contexts.losses import NO_CALLERS, STEPS, tallies


def told() -> dict[str, int]:
    """What is told where each of the unwinder's tallies is another power of two."""
    return dict(tallies(np.uint64(1) << np.arange(_unwinder.TALLIES, dtype=np.uint64)))


def test_every_tally_has_a_step_and_a_reason_that_the_waterfall_shows() -> None:
    known = {step.key for step in STEPS}
    known |= {f"{step.key}/{reason}" for step in STEPS for reason in step.reasons}
    known |= {f"context_callers/{reason}" for reason in NO_CALLERS}
    assert set(told()) == known


def test_pairs_are_those_that_ran_and_those_that_are_lost() -> None:
    found = told()
    lost = sum(count for name, count in found.items() if name.startswith("context_runs/"))
    assert found["context_pairs"] == found["context_runs"] + lost


def test_no_tally_is_told_as_another() -> None:
    found = told()
    single = [count for count in found.values() if count.bit_count() == 1]
    assert len(set(single)) == len(single)
    assert {name for name, count in found.items() if count.bit_count() > 1} == {
        "context_pairs", "context_runs",
    }  # fmt: skip
