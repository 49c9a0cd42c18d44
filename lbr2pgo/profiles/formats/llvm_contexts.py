"""The LLVM sample profile by calling context, where samples have call stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lbr2pgo.contexts.losses import NO_CALLERS
from lbr2pgo.contexts.losses import STEPS as UNWINDING
from lbr2pgo.model.waterfall import Reason, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lbr2pgo.model.context_counts import ContextCounts
    from lbr2pgo.profiles.formats.base import Work
    from lbr2pgo.profiles.llvm.contexts.lines import LineContexts
    from lbr2pgo.profiles.llvm.contexts.profile import ContextProfile
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable

_NO_CALL_LOCATION = Reason(
    "called from code without a source location",
    "build all code with -g (or -g1) and -fdebug-info-for-profiling",
)
STEPS = (
    *UNWINDING,
    Step(
        "context_callers",
        "with all callers that were seen",
        "fall-throughs",
        "context_runs",
        {**NO_CALLERS, "no_call_location": _NO_CALL_LOCATION},
    ),
    Step(
        "context_located",
        "attributed to a source location",
        "fall-throughs",
        "context_runs",
        {
            "no_location": Reason(
                "without a source location",
                "build with -g (or -g1) and -fdebug-info-for-profiling, and give the unstripped "
                "binary",
            ),
            "no_call_location": Reason(
                f"{_NO_CALL_LOCATION.title} (--compat llvm-profgen)",
                "leave out --compat: their innermost callers are known",
            ),
        },
    ),
    Step("llvm_context_runs", "written to the sample profile", "fall-throughs", "context_located"),
)

Shown = Literal["nested", "full"]


@dataclass(frozen=True, slots=True)
class Shape:
    """How contexts are written."""

    shown: Shown
    depth: int | None
    """How many callers are kept; None: all."""
    longest_repeat: int | None
    """The longest round of calls of which recursion shows one only; None: any, 0: all show."""


def has_chains(work: Work) -> bool:
    """Whether samples have call stacks that were not dropped."""
    from lbr2pgo.contexts.recordings import has_call_stacks

    if not has_call_stacks(work.found):
        return False
    tallies = work.once(_unwound).tallies
    return tallies["samples_unwound"] > tallies["call_stacks_whole/no_call_stack"]


def tallies(work: Work) -> Mapping[str, int]:
    """Of all steps."""
    counts = work.once(_unwound)
    is_nowhere, is_cut = work.once(_by_line).lost()
    is_dropped = is_cut if work.found.judged_by.as_llvm else is_cut & False
    runs = counts.runs.count
    total, behind = counts.tallies["context_runs"], counts.tallies["context_callers/behind_broken"]
    cut = int(runs[is_cut].sum())
    located = int(runs[~is_nowhere & ~is_dropped].sum())
    return {
        **counts.tallies,
        "context_callers": total - behind - cut,
        "context_callers/no_call_location": cut,
        "context_located": located,
        "context_located/no_location": int(runs[is_nowhere].sum()),
        "context_located/no_call_location": int(runs[~is_nowhere & is_dropped].sum()),
        "llvm_context_runs": located,
    }


def context_profile(work: Work, shape: Shape) -> ContextProfile | ProfileTable:
    """The profile, with contexts in brackets or nested into functions."""
    from lbr2pgo.native.context_keys import NO_LIMIT
    from lbr2pgo.profiles.llvm.contexts.keys import ContextShape

    contexts = work.once(_by_line)
    limits = (NO_LIMIT if n is None else n for n in (shape.longest_repeat, shape.depth))
    with work.timings.stage("find contexts"):
        profile = contexts.profile(ContextShape(*limits))
    if shape.shown == "full":
        return profile.without_ambiguous()
    return _nested(work, profile, contexts)


def _nested(work: Work, profile: ContextProfile, contexts: LineContexts) -> ProfileTable:
    from lbr2pgo.profiles.llvm.contexts.nesting import nested
    from lbr2pgo.profiles.llvm.contexts.preinliner import preinlined

    as_llvm = work.found.judged_by.as_llvm
    with work.timings.stage("choose what is inlined"):
        left = preinlined(profile, contexts.sizes(), as_llvm=as_llvm)
    return nested(left).without_ambiguous()


def _unwound(work: Work) -> ContextCounts:
    from lbr2pgo.contexts.recordings import unwound

    with work.timings.stage("unwind call stacks"):
        return unwound(work.found)


def _by_line(work: Work) -> LineContexts:
    from lbr2pgo.profiles.llvm.contexts.lines import LineContexts

    with work.timings.stage("look up lines"):
        return LineContexts(
            work.once(_unwound), work.program, work.debug, as_llvm=work.found.judged_by.as_llvm
        )
