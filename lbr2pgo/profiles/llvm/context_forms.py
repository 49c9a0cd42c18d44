"""The LLVM sample profile by calling context, where samples have call stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbr2pgo.evidence.contexts.losses import NO_CALLERS
from lbr2pgo.evidence.contexts.losses import STEPS as UNWINDING
from lbr2pgo.model.compat import (
    CALLERS_ALL_LOCATED,
    CALLERS_WITH_PROBES,
    INLINED_ONCE,
    THIN_COPIES,
)
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.llvm.lacks import (
    COMPILE_WITH_PROBES,
    NO_LOCATION,
    NO_PROBE,
    NOTHING_TO_COMPILE,
    REASONS,
    Lack,
    tallied,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.model.context_counts import ContextCounts
    from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
    from lbr2pgo.profiles.llvm.contexts.context_trees import Lost
    from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts
    from lbr2pgo.profiles.llvm.contexts.probe_contexts import ProbeContexts
    from lbr2pgo.profiles.llvm.contexts.vtable_contexts import ContextLoads
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable
    from lbr2pgo.profiles.work import Work
    from lbr2pgo.support.addresses import PlacedAddresses
    from lbr2pgo.support.arrays import U64, Bools

LINE_BREAK = "line_break"
HAS_LINE_BREAK = Reason(
    "in functions with a line break in their names",
    "add --llvm-format extbinary, which can hold them",
)
_NO_CALL_LOCATION = Reason(
    "called from code without a source location",
    "build all code with -g (or -g1) and -fdebug-info-for-profiling",
)
_NO_CALL = {Lack.PLACE: "no_call_location"}
_NO_CALL_PROBE = {
    Lack.PLACE: "no_call_probe",
    Lack.PROBES: "no_caller_probes",
    Lack.SOURCE: "no_caller_source",
}
STEPS = (
    *UNWINDING,
    Step(
        "context_callers",
        "with all callers that were seen",
        "fall-throughs",
        "context_runs",
        {
            **NO_CALLERS,
            "no_call_location": _NO_CALL_LOCATION,
            "no_call_probe": Reason(
                "called by calls whose pseudo probe the optimizer dropped",
                "record a build with -mllvm -enable-tail-merge=0 -mllvm "
                "-simplifycfg-sink-common=0: merged calls have none; innermost callers are known",
            ),
            "no_caller_probes": Reason(
                "called from functions of files compiled without pseudo probes", COMPILE_WITH_PROBES
            ),
            "no_caller_source": Reason(
                "called from code without debug information, as of the C library",
                f"{NOTHING_TO_COMPILE}; innermost callers are known",
            ),
        },
    ),
    Step(
        "context_located",
        "attributed to a source location",
        "fall-throughs",
        "context_runs",
        {
            **REASONS,
            "no_call_location": Reason(
                f"{_NO_CALL_LOCATION.title} (--compat llvm-profgen)",
                "leave out --compat: their innermost callers are known",
            ),
        },
    ),
    Step(
        "llvm_context_runs",
        "written to the sample profile",
        "fall-throughs",
        "context_located",
        {LINE_BREAK: HAS_LINE_BREAK},
    ),
)


def has_chains(work: Work) -> bool:
    """Whether samples have call stacks that were not dropped."""
    from lbr2pgo.evidence.contexts.context_finding import has_call_chains

    if not has_call_chains(work.found):
        return False
    tallies = unwound(work).tallies
    return tallies["samples_unwound"] > tallies["call_stacks_whole/no_call_stack"]


def tallies(work: Work, *, by_probes: bool) -> Mapping[str, int]:
    """Of all steps."""
    counts = unwound(work)
    lost, is_dropped = _lost(work, by_probes=by_probes)
    runs = counts.runs.count
    total, behind = counts.tallies["context_runs"], counts.tallies["context_callers/behind_broken"]
    located = int(runs[~lost.is_nowhere & ~is_dropped].sum())
    of_callers, of_runs = (_NO_CALL_PROBE, NO_PROBE) if by_probes else (_NO_CALL, NO_LOCATION)
    return {
        **counts.tallies,
        "context_callers": total - behind - int(runs[lost.is_cut].sum()),
        **tallied("context_callers", of_callers, lost.cut, runs),
        "context_located": located,
        **tallied("context_located", of_runs, lost.nowhere, runs),
        "context_located/no_call_location": int(runs[~lost.is_nowhere & is_dropped].sum()),
        "llvm_context_runs": located,
    }


def notes(work: Work) -> Iterator[str]:
    """Which functions could have probes, but were compiled without."""
    import numpy as np

    from lbr2pgo.profiles.llvm.unprobed import unprobed_functions

    runs, lost = unwound(work).runs, work.once(_lost_by_probe)
    ran, called = lost.nowhere == Lack.PROBES, lost.cut == Lack.PROBES
    addresses = np.concatenate((runs.start[ran], lost.call[called]))
    count = np.concatenate((runs.count[ran], runs.count[called]))
    return unprobed_functions(addresses, count, work.debug)


def located_runs(work: Work, *, by_probes: bool) -> tuple[PlacedAddresses, U64]:
    """Where the runs begin that the profile holds, and how often each was seen."""
    lost, is_dropped = _lost(work, by_probes=by_probes)
    runs, held = unwound(work).runs, ~lost.is_nowhere & ~is_dropped
    return runs.start[held], runs.count[held]


def _lost(work: Work, *, by_probes: bool) -> tuple[Lost, Bools]:
    """What runs lack, and which are dropped since they lack callers."""
    lost = work.once(_lost_by_probe if by_probes else _lost_by_line)
    return lost, lost.is_cut & (work.compat.follows(CALLERS_ALL_LOCATED) and not by_probes)


def context_profile(
    work: Work,
    depth: int | None,
    longest_repeat: int | None,
    *,
    by_probes: bool,
    is_nested: bool,
    with_vtables: bool = False,
) -> ContextProfile | ProfileTable:
    """The profile, with contexts nested into functions or in brackets: see `ContextShape`.

    None are limits that are not set. Raises OutputError where nothing says which virtual tables
    were used.
    """
    from lbr2pgo.profiles.llvm.contexts._contexts import NO_LIMIT
    from lbr2pgo.profiles.llvm.contexts.keys import ContextShape

    contexts = _contexts(work, by_probes=by_probes)
    limits = (NO_LIMIT if n is None else n for n in (longest_repeat, depth))
    with work.timings.stage("find contexts"):
        loads = work.once(_vtable_loads) if with_vtables else None
        infers = not by_probes or (is_nested and not work.compat.follows(CALLERS_WITH_PROBES))
        profile = contexts.profile(ContextShape(*limits), loads, infers_calls=infers)
    return _nested(work, profile, contexts) if is_nested else profile.without_ambiguous()


def _vtable_loads(work: Work) -> ContextLoads:
    from lbr2pgo.profiles.llvm.contexts.vtable_contexts import loads_by_context
    from lbr2pgo.profiles.llvm.vtables import vtable_loads

    return loads_by_context(vtable_loads(work), unwound(work), work.program)


def _contexts(work: Work, *, by_probes: bool) -> LineContexts | ProbeContexts:
    return work.once(_by_probe) if by_probes else work.once(_by_line)


def _nested(
    work: Work, profile: ContextProfile, contexts: LineContexts | ProbeContexts
) -> ProfileTable:
    from lbr2pgo.profiles.llvm.contexts.alike import with_alike_apart
    from lbr2pgo.profiles.llvm.contexts.nesting import (
        nested,
        with_own_copies,
        with_thin_ones_unmarked,
        without_mere_callers,
    )
    from lbr2pgo.profiles.llvm.contexts.preinliner import preinlined

    with work.timings.stage("choose what is inlined"):
        left = preinlined(profile, contexts.sizes(), work.compat)
        if not work.compat.follows(THIN_COPIES):
            left = with_alike_apart(left)
        if not work.compat.follows(INLINED_ONCE):
            left = with_own_copies(left)
    table = nested(left).without_ambiguous()
    if table.checksum is not None and not work.compat.follows(CALLERS_WITH_PROBES):
        table = without_mere_callers(table)
    return table if work.compat.follows(THIN_COPIES) else with_thin_ones_unmarked(table)


def findings(work: Work) -> tuple[Finding[ContextCounts], ...]:
    """What contexts ask of the samples, where these may have call stacks."""
    from lbr2pgo.evidence.contexts.context_finding import has_call_chains

    return (work.once(_contexts_finding),) if has_call_chains(work.found) else ()


def _contexts_finding(work: Work) -> Finding[ContextCounts]:
    from lbr2pgo.evidence.contexts.context_finding import contexts

    return contexts(work.found)


def unwound(work: Work) -> ContextCounts:
    """What ran in which context, where `findings` has something to find."""
    told = work.told(work.once(_contexts_finding))
    assert told is not None  # where there are call chains, there are samples
    return told


def _by_line(work: Work) -> LineContexts:
    from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts

    with work.timings.stage("look up lines"):
        return LineContexts(unwound(work), work.program, work.debug, work.compat)


def _by_probe(work: Work) -> ProbeContexts:
    from lbr2pgo.profiles.llvm.contexts.probe_contexts import ProbeContexts

    with work.timings.stage("look up probes"):
        return ProbeContexts(unwound(work), work.program, work.debug, work.compat)


def _lost_by_line(work: Work) -> Lost:
    return work.once(_by_line).lost()


def _lost_by_probe(work: Work) -> Lost:
    return work.once(_by_probe).lost()
