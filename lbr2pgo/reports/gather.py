"""From replayed recordings to `Evidence`: a second pass over the samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.evidence import Evidence, Limits
from lbr2pgo.counting.borders import Borders, told_apart
from lbr2pgo.counting.count import SampleReading
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.evidence.collector import Collector, Finding, Pass, Samples
from lbr2pgo.evidence.stack_kinds import STACK_KINDS
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.native.walk import StackKind
from lbr2pgo.replay.recordings import Replayed
from lbr2pgo.replay.replay import Flow
from lbr2pgo.sources.base import SourceInfo, StackSource
from lbr2pgo.support.addresses import RuntimeAddresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass

_AMD = "AuthenticAMD"  # vendor in perf's cpuid (perf: tools/perf/arch/x86/util/header.c)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read, and what the files say of themselves."""

    evidence: Evidence
    infos: tuple[SourceInfo, ...]
    tallies: Mapping[str, int]
    notes: tuple[str, ...]


def gather(
    found: Replayed,
    *,
    analyses: Sequence[str] = registry.NAMES,
    top: int | None = None,
    also: Sequence[Finding[Any]] = (),
) -> Gathered:
    """Read the samples of replayed recordings again, for what counts don't tell.

    Only what these analyses need, and `also` this, is looked for, some of it in the `top` hottest
    functions only; None: in all.
    """
    known = Evidence(found.program, found.program.debug_info(), found.flow)
    wanted = (STACK_KINDS, *registry.findings(analyses, known, top), *also)
    passes = [
        _second_pass(source, found, wanted)
        for source in found.sources
        if isinstance(source, StackSource)
    ]
    infos = tuple(source.info for source in found.sources)
    findings = _results(wanted, passes)
    limits = _limits(infos, findings.get(STACK_KINDS, frozenset()), len(passes))
    flow = _told_apart(found.flow, found.borders)
    evidence = replace(known, flow=flow, findings=findings, limits=limits, borders=found.borders)
    return Gathered(evidence, infos, found.flow.tallies, found.notes)


def _told_apart(flow: Flow, borders: Borders) -> Flow:
    """The flow with its branches to and from other files by file."""
    branches, row = told_apart(flow.branches, borders)
    places = flow.branch_from[row], flow.branch_to[row]
    return replace(flow, branches=branches, branch_from=places[0], branch_to=places[1])


def _numbers_of(files: MappedFiles, names: Sequence[str]) -> Callable[[RuntimeAddresses], I64]:
    """Which of the names the file at each run-time address has."""
    numbers = np.array([names.index(name) if name in names else 0 for name in files.names])
    return lambda addresses: numbers[files.of_addresses(addresses)]


def _second_pass(
    source: StackSource, found: Replayed, wanted: Sequence[Finding[Any]]
) -> list[Collector[Any]]:
    """Collectors of what is wanted that have seen all samples of a source."""
    reading = SampleReading(source, found.image, found.asked)
    outside = _numbers_of(reading.files, found.borders.files)
    known = Pass(found.program, found.flow, reading.spaces, source.info.events, outside)
    collectors = [finding.start(known) for finding in wanted]
    for batch, spaces, kinds in reading.batches():
        samples = Samples(batch, spaces, kinds, reading.spaces, found.flow.instructions)
        for collector in collectors:
            collector.add(samples)
    return collectors


def _results(
    wanted: Sequence[Finding[Any]], passes: Sequence[list[Collector[Any]]]
) -> dict[Finding[Any], Any]:
    """What was found in all sources."""
    for others in passes[1:]:
        for collector, other in zip(passes[0], others, strict=True):
            collector.merge(other)
    collectors = passes[0] if passes else []
    return {finding: each.result() for finding, each in zip(wanted, collectors, strict=False)}


def _limits(infos: Sequence[SourceInfo], kinds: frozenset[StackKind], with_samples: int) -> Limits:
    return Limits(
        is_filtered=StackKind.SELECTED in kinds,
        is_single=any(e.records_single_branches for info in infos for e in info.events),
        is_call_stack=kinds == {StackKind.OPEN_CALLS},
        is_amd=any(_AMD in info.details.get("cpuid", "") for info in infos),
        is_simulated=any(info.details.get("cpuid") == SIMULATED_CPU for info in infos),
        has_samples=with_samples > 0,
        has_counts=with_samples < len(infos),
    )
