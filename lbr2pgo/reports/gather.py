"""From replayed recordings to `Evidence`: a second pass over the samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.evidence import Evidence, Limits
from lbr2pgo.counting.borders import Borders, told_apart
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.evidence.stack_kinds import STACK_KINDS
from lbr2pgo.model.branch_counts import without_runs
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.sources.base import Source, SourceInfo, StackSource
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct

_DEEPEST = 64
"""Entries of the deepest branch stacks."""
_AMD = "AuthenticAMD"  # vendor in perf's cpuid (perf: tools/perf/arch/x86/util/header.c)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read, and what the files say of themselves."""

    evidence: Evidence
    infos: tuple[SourceInfo, ...]
    tallies: Mapping[str, int]
    notes: tuple[str, ...]


def look_for_analyses(
    analyses: Sequence[str] = registry.NAMES,
    top: int | None = None,
    also: Sequence[Finding[Any]] = (),
) -> Callable[[Replayed], SecondLook]:
    """What analyses, and `also` these, ask the samples for, which counts don't tell.

    Some is looked for in the `top` hottest functions only; None: in all.
    """

    def look(found: Replayed) -> SecondLook:
        limits = Limits(is_dense=_is_dense(found.sources))
        known = Evidence(found.program, found.program.debug_info(), found.flow, limits)
        return SecondLook(found, (STACK_KINDS, *registry.findings(analyses, known, top), *also))

    return look


def gather(found: Replayed) -> Gathered:
    """Replayed recordings with what was asked for.

    Where some branches alone seem recorded, what ran between them is not known, whatever was made
    of it.
    """
    findings, is_selected = found.told, found.seems_selected is not None
    laid = found.flow
    if is_selected:
        laid = replay(without_runs(found.counts), found.program, found.judged_by)
    flow = _told_apart(laid, found.borders)
    kinds = findings.get(STACK_KINDS, frozenset())
    limits = _limits(found.sources, kinds | ({StackKind.SELECTED} if is_selected else set()))
    debug = found.program.debug_info()
    debug.expect(_starts_of_code(found.program, flow))
    evidence = Evidence(found.program, debug, flow, limits, findings, found.borders)
    infos = tuple(source.info for source in found.sources)
    return Gathered(evidence, infos, laid.tallies, found.notes)


def _starts_of_code(program: Program, flow: Flow) -> PlacedAddresses:
    """Where the functions and fragments begin that the flow is laid over."""
    regions = program.regions
    region = distinct(regions.containing(flow.instructions.address))
    return regions.start[region[region >= 0]]


def _told_apart(flow: Flow, borders: Borders) -> Flow:
    """The flow with its branches to and from other files by file."""
    return flow.with_branches(*told_apart(flow.branches, borders))


def _limits(sources: Sequence[Source], kinds: frozenset[StackKind]) -> Limits:
    infos = [source.info for source in sources]
    has_samples = [isinstance(source, StackSource) for source in sources]
    return Limits(
        is_filtered=StackKind.SELECTED in kinds,
        is_single=any(e.records_single_branches for info in infos for e in info.events),
        is_call_stack=kinds == {StackKind.OPEN_CALLS},
        is_dense=_is_dense(sources),
        is_simulated=any(info.details.get("cpuid") == SIMULATED_CPU for info in infos),
        no_cycles=tuple(dict.fromkeys(filter(None, map(_why_no_cycles, infos)))),
        no_predictions=tuple(dict.fromkeys(i.no_predictions for i in infos if i.no_predictions)),
        has_samples=any(has_samples),
        has_counts=not all(has_samples),
    )


def _is_dense(sources: Sequence[Source]) -> bool:
    """Whether one of the events of each recording fires as often as stacks are deep."""
    return bool(sources) and all(
        any(0 < (event.period or 0) <= _DEEPEST for event in source.info.events)
        for source in sources
    )


def _why_no_cycles(info: SourceInfo) -> str | None:
    """A sentence, if it is known that no entry of a file can have cycles."""
    filters = [kept for event in info.events if (kept := event.branch_sample_type)]
    if info.no_cycles is not None:
        return info.no_cycles
    if _AMD in info.details.get("cpuid", ""):
        return "Branch records of AMD processors have no cycles: their time is not known."
    if filters and all(kept >> BRANCH_FILTER_BITS["no_cycles"] & 1 for kept in filters):
        return "The recording has no cycles, for its filter says no_cycles: record without it."
    return None
