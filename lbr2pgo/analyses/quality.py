"""Is a profile good enough to ship: measures, and the gates that they must pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from lbr2pgo.analyses import accuracy, sample_quality, staleness
from lbr2pgo.analyses.sample_quality import ProfileOverlap
from lbr2pgo.analyses.staleness import Derive, Staleness
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.afdo.gcc_samples import gcc_samples
from lbr2pgo.profiles.bolt.fdata.fdata_tables import UNKNOWN, Fdata
from lbr2pgo.profiles.llvm.correlate import sample_profile
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.propeller.written import Clusters
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import exact_sum, sums_of_groups

MEASURES = {
    "density": "samples per location in hot functions, as llvm-profgen defines it",
    "coverage": "share of the hot functions' locations that have a count",
    "conservation": "share of the flow that leaves each block as often as it enters it",
    "stale": "share of the counts that the binary has no place for",
    "missing": "share of the counts in functions that the binary lacks",
    "bias": "share of the entries at one end of stacks that belong to other branches",
    "overlap": "similarity with the other profile, as llvm-profdata defines it",
}
"""Each measure's name and meaning."""
NO_MORE = ("stale", "missing", "bias")
"""Measures of which less is better."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile in the forms that it can be brought into; None where it can't."""

    samples: SampleProfile | None = None
    fdata: Fdata | None = None
    flow: Flow | None = None
    gcc: GccProfile | None = None
    """Samples as GCC keeps them: names and discriminators are others."""
    clusters: Clusters | None = None
    """Blocks laid out for Propeller."""
    bias: float | None = None
    """Of the positions in the recorded stacks (`stack_ends.position_bias`)."""

    @property
    def any_samples(self) -> SampleProfile | None:
        """For whichever compiler they are."""
        if self.samples is not None:
            return self.samples
        return None if self.gcc is None else self.gcc.samples


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured; None where the profile, or its comparison, can't tell."""

    density: float | None
    coverage: float | None
    conservation: float | None
    stale: Staleness | None
    overlap: ProfileOverlap | None
    bias: float | None = None

    def values(self) -> dict[str, float | None]:
        """One number for each of `MEASURES`."""
        return {
            "density": self.density,
            "coverage": self.coverage,
            "conservation": self.conservation,
            "stale": None if self.stale is None else self.stale.share,
            "missing": None if self.stale is None else self.stale.functions,
            "bias": self.bias,
            "overlap": None if self.overlap is None else self.overlap.similarity,
        }


@dataclass(frozen=True, slots=True)
class Gates:
    """Limits by measure, see `MEASURES`; the least that is good, for `NO_MORE` the most."""

    limits: Mapping[str, float] = field(default_factory=dict)

    def failed(self, quality: Quality) -> Iterator[str]:
        """Measures that miss their limit; those that can't be known miss it too."""
        values = quality.values()
        for name, limit in self.limits.items():
            value = values[name]
            is_bad = value is None or (value > limit if name in NO_MORE else value < limit)
            if is_bad:
                yield name


def measure(
    profile: Profile, program: Program, old: Profile | None = None, build: Program | None = None
) -> Quality:
    """Measure a profile against its binary, another profile, and a later build, if there are."""
    samples = profile.any_samples
    return Quality(
        density=None if samples is None else sample_quality.density(samples),
        coverage=None if samples is None else sample_quality.coverage(samples),
        conservation=None if profile.flow is None else recorded_conservation(profile.flow, program),
        stale=_stale(profile, program) if build is None else _stale_in(profile, build),
        overlap=None if old is None else overlap(old, profile),
        bias=profile.bias,
    )


def _stale(profile: Profile, program: Program) -> Staleness | None:
    if profile.flow is not None:
        return staleness.of_flow(profile.flow)
    return _stale_in(profile, program)


def _stale_in(profile: Profile, program: Program) -> Staleness | None:
    """What a profile says of code that a program lacks, which need not be the one recorded."""
    if profile.clusters is not None:
        return staleness.of_clusters(profile.clusters.functions, program)
    samples = profile.any_samples
    if samples is None:
        return None if profile.fdata is None else staleness.of_fdata(profile.fdata, program)
    if samples.is_probe_based and program.probes.present:
        return staleness.of_probes(samples, program.probes.descriptors)
    debug = DebugInfo.open(program.image)
    if not debug.present:
        return None
    derive: Derive = sample_profile
    if profile.samples is None and profile.gcc is not None:
        derive = partial(gcc_samples, version=profile.gcc.version)
    return staleness.of_sample_profile(samples, program, debug, derive)


def overlap(base: Profile, test: Profile) -> ProfileOverlap | None:
    """Compare two profiles in a form that both have; None if there is none."""
    if base.samples is not None and test.samples is not None:
        return sample_quality.compare(base.samples, test.samples)
    if base.gcc is not None and test.gcc is not None:
        return sample_quality.compare(base.gcc.samples, test.gcc.samples)
    if base.fdata is not None and test.fdata is not None:
        return _fdata_overlap(base.fdata, test.fdata)
    return None


def _fdata_overlap(base: Fdata, test: Fdata) -> ProfileOverlap | None:
    """Overlap of two distributions over branches."""
    a, b = _branch_counts(base), _branch_counts(test)
    keys = sorted(a.keys() | b.keys())
    if not a or not b:
        return None
    counts = [np.array([side.get(key, 0) for key in keys], dtype=np.uint64) for side in (a, b)]
    return ProfileOverlap(accuracy.overlap(*counts), None, None)


def _branch_counts(fdata: Fdata) -> dict[tuple[str, int, str, int], int]:
    if fdata.branches is None:
        return {}
    columns = fdata.branches
    found: dict[tuple[str, int, str, int], int] = {}
    for from_name, from_offset, to_name, to_offset, count in zip(
        columns.from_name.tolist(),
        columns.from_offset.tolist(),
        columns.to_name.tolist(),
        columns.to_offset.tolist(),
        columns.count.tolist(),
        strict=True,
    ):
        names = fdata.names[from_name], fdata.names[to_name]
        if UNKNOWN not in names:
            key = (names[0], from_offset, names[1], to_offset)
            found[key] = found.get(key, 0) + count
    return found


def recorded_conservation(flow: Flow, program: Program) -> float | None:
    """That of a recording with the fall-throughs behind newest branches, which no recorder sees."""
    return conservation(replay(impute(flow.counts), program))


def conservation(flow: Flow) -> float | None:
    """Share of the flow that leaves each block as often as it enters it; None without any.

    What enters a block is branches to it and runs into its first instruction; what leaves it is
    branches and runs past its last. The ends of each stack are loose, so that 1 is reached by
    exact counts only.
    """
    code = flow.instructions
    if not len(code) or not flow.executed.any():
        return None
    blocks = accuracy.block_starts(code, accuracy.estimated_edges(flow))
    last = np.append(blocks[1:], len(code)) - 1
    past = _past(flow, code)
    arrived = _by_block(_arrivals(flow), blocks)
    arrived[blocks > 0] += past[blocks[blocks > 0] - 1]
    left = _by_block(flow.taken, blocks) + past[last]
    larger = exact_sum(np.maximum(arrived, left))
    return exact_sum(np.minimum(arrived, left)) / larger if larger else None


def _past(flow: Flow, code: InstructionTable) -> U64:
    """(m,): how many runs go on from each instruction to the next."""
    goes_on = np.append(code.run[1:] == code.run[:-1], False)
    return np.where(goes_on, flow.executed - flow.ended, np.uint64(0))


def _arrivals(flow: Flow) -> U64:
    """(m,): how often branches reached each instruction."""
    reached = flow.branch_to >= 0
    total = np.zeros(len(flow.instructions), dtype=np.uint64)
    np.add.at(total, flow.branch_to[reached], flow.branches.count[reached])
    return total


def _by_block(values: U64, blocks: I64) -> U64:
    return sums_of_groups(values, blocks)
