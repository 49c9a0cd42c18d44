from __future__ import annotations

import numpy as np
from builders.evidence import FUNCTIONS, program, source
from builders.sources import Sample, batch_of

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.evidence.sample_runs import KnownRuns, SampleRuns
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import replay_sources

BACK, FORWARD, JOIN = (0x1016, 0x1005), (0x1006, 0x1010), (0x1012, 0x1015)


def laid_out(*samples: Sample) -> tuple[SampleRuns, list[tuple[int, int]]]:
    """The runs of samples over the small program, and the valid ones by address."""
    code: Program = program(FUNCTIONS)
    flow = replay_sources([source(*samples)], code).flow
    spaces = AddressSpaces.fixed(code.image.layout)
    batch, n = batch_of(samples), len(samples)
    each = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    stacks = stacks_of(batch, *each, spaces.bounds)
    found = KnownRuns(spaces, flow.instructions).of_samples(batch, stacks)
    address = flow.instructions.address
    rows = np.flatnonzero(found.valid)
    first, last = address[found.first[rows]], address[found.last[rows]]
    return found, list(zip(first.tolist(), last.tolist(), strict=True))


def test_each_sample_has_its_runs_newest_first() -> None:
    found, runs = laid_out(Sample([BACK, JOIN, FORWARD, BACK]), Sample([FORWARD, BACK], weight=5))
    assert runs == [(0x1015, 0x1016), (0x1010, 0x1012), (0x1005, 0x1006), (0x1005, 0x1006)]
    assert found.sample.tolist() == [0, 0, 0, 1]
    assert found.weight.tolist() == [1, 5]


def test_a_run_that_the_code_forbids_is_marked() -> None:
    found, runs = laid_out(Sample([BACK, FORWARD]))  # from 0x1010 across the jump at 0x1012
    assert (found.valid.tolist(), runs) == ([False], [])


def test_the_prediction_is_that_of_the_branch_at_the_end() -> None:
    missed, right, silent = (Sample([(*FORWARD, flags), BACK]) for flags in (1, 2, 0))
    assert laid_out(missed, right, silent)[0].prediction.tolist() == [1, 2, 0]


def test_where_the_newest_branch_led_is_known_if_its_run_is() -> None:
    outside = (0x7FFF0000, 0x1005)
    found, _ = laid_out(Sample([FORWARD, BACK]), Sample([BACK]), Sample([outside, BACK]))
    assert (found.led_to >= 0).tolist() == [True, False, False]


def test_a_run_to_the_compare_of_a_fused_pair_ends_at_its_branch() -> None:
    """AMD records the address of the compare before the branch."""
    (fused,) = laid_out(Sample([(0x1005, 0x1010), BACK]))[1]
    assert fused == (0x1005, 0x1006)
