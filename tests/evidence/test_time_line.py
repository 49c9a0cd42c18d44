"""Which functions ran when, by a recording's own samples."""

from __future__ import annotations

from collections import Counter

import numpy as np
from builders.recordings import PIE, RECORDING

from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.evidence.time_line import TIME_LINE
from lbr2pgo.replay.recordings import Inputs, read_and_replay


def test_every_sample_is_in_its_slice() -> None:
    inputs = Inputs(profiles=(RECORDING, RECORDING), binary=PIE)
    found = read_and_replay(inputs, asks=lambda found: SecondLook(found, [TIME_LINE]))
    activity = found.told[TIME_LINE]
    times = np.concatenate([batch.time for batch in found.sources[0].batches(None)])
    slices = Counter(((times - np.uint64(activity.start)) // np.uint64(activity.width)).tolist())
    seen = activity.samples.sum(1).tolist()
    assert sum(seen) == found.flow.tallies["samples_mapped"]
    assert all(n <= 2 * slices[row] for row, n in enumerate(seen))
    assert (activity.first, activity.last) >= (times.min(), 0)
    names = [found.program.regions.label(f) for f in activity.function.tolist() if f >= 0]
    assert "run" in names
