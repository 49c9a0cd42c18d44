"""How much of what samples interrupted is in functions that other samples show.

What a sample interrupted nearly always stands in its own stack, too. What the *others* show tells
how much of the execution the recording has met at all: the part in functions that a single sample
shows is about the part in those that none does (I. J. Good, Biometrika 40, 1953).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import distinct


class InterruptedCollector:
    """Counts samples by the functions that they interrupted, and that their stacks show."""

    def __init__(self, known: Pass) -> None:
        self._spaces, self._functions = known.spaces, known.program.functions
        self._of_code = self._functions.containing(known.flow.instructions.address)
        size = len(self._functions)
        self._shown, self._in_shown, self._in_others = np.zeros((3, size), np.int64)

    def add(self, samples: Samples) -> None:
        """Look at a batch."""
        shown = self._pairs(samples)
        self._shown += self._by_function(shown)
        interrupted = self._interrupted(samples)
        is_shown = np.isin(interrupted, shown)
        self._in_shown += self._by_function(interrupted[is_shown])
        self._in_others += self._by_function(interrupted[~is_shown])

    def _pairs(self, samples: Samples) -> I64:
        """Each function that a sample's runs are in, as `_numbers`."""
        runs = samples.runs
        function = self._of_code[runs.first[runs.valid]]
        return distinct(self._numbers(runs.sample[runs.valid], function))

    def _interrupted(self, samples: Samples) -> I64:
        """The function that each sample interrupted, as `_numbers`."""
        image, inside = self._spaces.to_image(samples.spaces, samples.batch.ip)
        function = np.where(inside, self._functions.containing(image), -1)
        return self._numbers(np.arange(len(function)), function)

    def _numbers(self, sample: I64, function: I64) -> I64:
        """One number for both; none where there is no function."""
        known = function >= 0
        return sample[known] * len(self._functions) + function[known]

    def _by_function(self, numbers: I64) -> I64:
        size = len(self._functions)
        return np.bincount(numbers % max(size, 1), minlength=size)

    def merge(self, other: InterruptedCollector) -> None:
        """Add what another one saw."""
        self._shown += other._shown
        self._in_shown += other._in_shown
        self._in_others += other._in_others

    def result(self) -> float | None:
        """The share; None where no sample tells which function it interrupted."""
        total = int(self._in_shown.sum() + self._in_others.sum())
        known = self._in_shown[self._shown > 1].sum() + self._in_others[self._shown > 0].sum()
        return float(known / total) if total else None


INTERRUPTED = Finding("interrupted", InterruptedCollector)
