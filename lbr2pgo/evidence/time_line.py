"""Which functions ran when."""

from __future__ import annotations

from lbr2pgo.counting.activity import Activity
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.replay.chosen_phase import counter_of


class TimeLineCollector:
    """Counts the samples of a source that says when they were taken."""

    def __init__(self, known: Pass) -> None:
        self._has_times = known.has_times
        self._counter = counter_of(known.program, known.spaces, known.files)

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        if self._has_times:
            self._counter.add(samples.batch, samples.spaces)

    def merge(self, other: TimeLineCollector) -> None:
        """Take over what another one saw."""
        self._counter.merge(other._counter)

    def result(self) -> Activity | None:
        """None where no sample says when it was taken."""
        return self._counter.result()


TIME_LINE = Finding("time line", TimeLineCollector)
