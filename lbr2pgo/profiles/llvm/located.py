"""The sample profile of what ran, made once for all outputs that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.llvm.lacks import NO_PROBE, REASONS, Lack, tallied
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
    REASONS,
)


@dataclass(frozen=True, slots=True)
class Correlated:
    """The sample profile of what ran, and its part of the waterfall."""

    table: ProfileTable
    tallies: dict[str, int]
    is_located: Bools
    """(r,): the judged fall-throughs that have a location."""
    notes: tuple[str, ...] = ()
    """What could have one, but was compiled without."""


def correlated(work: Work) -> Correlated:
    """The sample profile of what ran, by source lines: to be had by `Work.once`."""
    from lbr2pgo.profiles.llvm.correlate import profile_table

    with work.timings.stage("correlate"):
        table, is_located = profile_table(work.flow, work.program, work.debug, work.compat)
    found, lost = located_runs(work, is_located)
    tallies = {"runs_located": found, "runs_located/no_location": lost}
    return Correlated(table, tallies, is_located)


def probed(work: Work) -> Correlated:
    """The sample profile of what ran, by pseudo probes: to be had by `Work.once`."""
    from lbr2pgo.profiles.llvm.probe_profile import probe_profile

    with work.timings.stage("look up probes"):
        table, is_located = probe_profile(work.flow, work.program, work.debug, work.compat)
    return Correlated(table, *_probed(work, is_located))


def _probed(work: Work, is_located: Bools) -> tuple[dict[str, int], Bools, tuple[str, ...]]:
    """The other columns of `Correlated`, of runs that are in functions with probes."""
    import numpy as np

    from lbr2pgo.profiles.llvm.unprobed import lacks, unprobed_functions

    lost = np.flatnonzero(in_function(work) & ~is_located)
    runs = work.flow.judged.runs
    start, count = runs.start[lost], runs.count[lost]
    lack = lacks(start, np.zeros(len(lost), np.bool_), work.debug, work.program.probes)
    found, _ = located_runs(work, is_located)
    tallies = {"runs_located": found, **tallied("runs_located", NO_PROBE, lack, count)}
    could = lack == Lack.PROBES
    notes = tuple(unprobed_functions(start[could], count[could], work.debug))
    return tallies, is_located, notes


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
