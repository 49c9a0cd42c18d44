"""When the ends of branches were first in a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.replay.recordings import Inputs, read_and_replay

TESTBINS = Path(__file__).parents[2] / "testbins"
PROGRAM = TESTBINS / "x86-64" / "interp.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"


def test_every_end_of_a_branch_has_the_time_of_its_first_sample() -> None:
    inputs = Inputs(profiles=(RECORDING, RECORDING), binary=PROGRAM)
    found = read_and_replay(inputs, asks=lambda found: SecondLook(found, [FIRST_TIMES]))
    times = found.told[FIRST_TIMES]
    branches = found.flow.branches
    ends = ((branches.from_, FROM), (branches.to, TO))
    known = {each for end, bit in ends for each in end[branches.known & bit != 0].tolist()}
    assert set(times.address.tolist()) == known
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for batch in found.sources[0].batches(None):
        place = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
        for end in (batch.from_, batch.to):
            for address, time in zip(end.tolist(), batch.time[place].tolist(), strict=True):
                first[address] = min(first.get(address, time), time)
                last[address] = max(last.get(address, time), time)
    bias = {address - image for address in first for image in [times.address[0]]}
    moved = next(b for b in bias if {int(a) + int(b) for a in times.address} <= first.keys())
    recorded = [int(address) + int(moved) for address in times.address]
    assert times.time.tolist() == [first[address] for address in recorded]
    assert times.last.tolist() == [last[address] for address in recorded]
