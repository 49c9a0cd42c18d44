"""The second reading of recordings: whatever needs more than counts is found in this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.counting.sample_reading import Onlooker, SampleReading
from lbr2pgo.evidence.collector import ByInstruction, Collector, Finding, Pass, Samples
from lbr2pgo.evidence.sample_runs import KnownRuns
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.replay.replay import Flow
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.support.addresses import RuntimeAddresses
from lbr2pgo.support.arrays import I64, U8


class SecondLook:
    """Collectors of what is wanted, for each source. Implements `Look`."""

    def __init__(self, found: Replayed, wanted: Iterable[Finding[Any]]) -> None:
        self._found, self._wanted = found, tuple(wanted)
        self._passes: list[list[Collector[Any]]] = []

    def at(self, reading: SampleReading) -> Onlooker:
        """What looks at the samples of a source."""
        flow, spaces = self._found.flow, reading.spaces
        outside = _numbers_of(reading.files, self._found.borders.files)
        info = reading.source.info
        runs = KnownRuns(spaces, flow.instructions)
        known = Pass(
            self._found.program, flow, spaces, info.events, outside, reading.files, info.has_times,
            runs,
        )  # fmt: skip
        collectors = [finding.start(known) for finding in self._wanted]
        self._passes.append(collectors)

        def look(batch: BranchStacks, of_samples: I64, kinds: U8) -> None:
            samples = Samples(batch, of_samples, kinds, runs)
            for collector in collectors:
                collector.add(samples)

        return look

    def told(self, flow: Flow) -> dict[Finding[Any], Any]:
        """What the samples of all sources tell, of the instructions of a flow."""
        if not self._passes:
            return {}
        collectors, *others = self._passes
        for other in others:
            for collector, each in zip(collectors, other, strict=True):
                collector.merge(each)
        results = [each.result() for each in collectors]
        if flow is not self._found.flow:
            rows = self._found.flow.instructions.index_of(flow.instructions.address)
            results = [
                each.of_instructions(rows) if isinstance(each, ByInstruction) else each
                for each in results
            ]
        # What starts a finding may hold a plan that is as large as the program.
        names = (replace(finding, start=_is_over) for finding in self._wanted)
        return dict(zip(names, results, strict=True))


def _is_over(_: Pass) -> NoReturn:
    raise RuntimeError("the samples were looked at")


def _numbers_of(files: MappedFiles, names: Sequence[str]) -> Callable[[RuntimeAddresses], I64]:
    """Which of the names the file at each run-time address has."""
    numbers = np.array([names.index(name) if name in names else 0 for name in files.names])
    return lambda addresses: numbers[files.of_addresses(addresses)]
