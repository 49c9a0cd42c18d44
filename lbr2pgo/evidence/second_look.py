"""The second reading of recordings: whatever needs more than counts is found in this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.evidence.collector import Collector, Finding, Pass, Samples
from lbr2pgo.replay.recordings import Replayed
from lbr2pgo.sources.base import StackSource
from lbr2pgo.support.addresses import RuntimeAddresses
from lbr2pgo.support.arrays import I64


def look_again(found: Replayed, wanted: Sequence[Finding[Any]]) -> dict[Finding[Any], Any]:
    """What the samples of all recordings tell of each finding; nothing where none hold samples."""
    passes = [
        _collected(number, found, wanted)
        for number, source in enumerate(found.sources)
        if isinstance(source, StackSource)
    ]
    if not passes:
        return {}
    collectors, *others = passes
    for other in others:
        for collector, each in zip(collectors, other, strict=True):
            collector.merge(each)
    return {finding: each.result() for finding, each in zip(wanted, collectors, strict=True)}


def _collected(
    number: int, found: Replayed, wanted: Sequence[Finding[Any]]
) -> list[Collector[Any]]:
    """Collectors of what is wanted that have seen all samples of a source."""
    reading = found.reading(number)
    outside = _numbers_of(reading.files, found.borders.files)
    events = reading.source.info.events
    known = Pass(found.program, found.flow, reading.spaces, events, outside)
    collectors = [finding.start(known) for finding in wanted]
    with closing(reading.batches()) as batches:
        for batch, spaces, kinds in batches:
            samples = Samples(batch, spaces, kinds, reading.spaces, found.flow.instructions)
            for collector in collectors:
                collector.add(samples)
    return collectors


def _numbers_of(files: MappedFiles, names: Sequence[str]) -> Callable[[RuntimeAddresses], I64]:
    """Which of the names the file at each run-time address has."""
    numbers = np.array([names.index(name) if name in names else 0 for name in files.names])
    return lambda addresses: numbers[files.of_addresses(addresses)]
