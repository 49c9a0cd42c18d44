"""The sample profile of what ran, made once for all outputs that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable
    from lbr2pgo.support.arrays import Bools

LOCATED = Step(
    "runs_located",
    "attributed to a source location",
    "fall-throughs",
    "runs_in_function",
    {
        "no_location": Reason(
            "without a source location",
            "build with -g (or -g1) and -fdebug-info-for-profiling, and give the unstripped binary",
        ),
        "no_probes": Reason(
            "in functions without pseudo probes",
            "build all code with -fpseudo-probe-for-profiling, and give the unstripped binary",
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Correlated:
    """The sample profile of what ran, and its part of the waterfall."""

    table: ProfileTable
    tallies: dict[str, int]
    is_located: Bools
    """(r,): the judged fall-throughs that have a location."""


def correlated(work: Work) -> Correlated:
    """The sample profile of what ran, by source lines: to be had by `Work.once`."""
    from lbr2pgo.profiles.llvm.correlate import profile_table

    with work.timings.stage("correlate"):
        table, is_located = profile_table(work.flow, work.program, work.debug, work.compat)
    return Correlated(table, _tallies(work, is_located, "no_location"), is_located)


def probed(work: Work) -> Correlated:
    """The sample profile of what ran, by pseudo probes: to be had by `Work.once`."""
    from lbr2pgo.profiles.llvm.probe_profile import probe_profile

    with work.timings.stage("look up probes"):
        table, is_located = probe_profile(work.flow, work.program, work.debug, work.compat)
    return Correlated(table, _tallies(work, is_located, "no_probes"), is_located)


def _tallies(work: Work, is_located: Bools, otherwise: str) -> dict[str, int]:
    found, lost = located_runs(work, is_located)
    return {"runs_located": found, f"runs_located/{otherwise}": lost}


def located_runs(work: Work, is_located: Bools) -> tuple[int, int]:
    """How many fall-throughs in functions have a source location, and how many have none."""
    count, is_inside = work.flow.judged.runs.count, in_function(work)
    found = int(count[is_inside & is_located].sum())
    lost = int(count[is_inside & ~is_located].sum())
    return found, lost


def in_function(work: Work) -> Bools:
    """(r,): the judged fall-throughs that are valid and in a function."""
    judged = work.flow.judged
    return judged.valid & (work.program.functions.containing(judged.runs.start) >= 0)
