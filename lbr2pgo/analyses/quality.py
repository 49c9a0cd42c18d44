"""Is a profile good enough to ship: measures, and the gates that they must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbr2pgo.analyses import accuracy
from lbr2pgo.profiles.llvm import sample_quality
from lbr2pgo.profiles.llvm.sample_names import canonical_name, guid
from lbr2pgo.profiles.reader import Profile, ProfileOverlap, Ran, overlap
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.program import Program
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.sums import exact_sum, sums_of_groups

MEASURES = {
    "density": "samples per location in hot functions, as llvm-profgen defines it",
    "coverage": "share of the hot functions' locations that have a count",
    "chance": "least share of the counts that chance has put elsewhere, on average",
    "conservation": "share of the flow that leaves each block as often as it enters it",
    "stale": "share of the counts that the binary has no place for",
    "missing": "share of the counts in functions that the binary lacks",
    "executed": "share of what the program executes that is in functions of the profile",
    "bias": "share of the entries at one end of stacks that belong to other branches",
    "overlap": "similarity with the other profile, as llvm-profdata defines it",
}
"""Each measure's name and meaning."""
NO_MORE = ("chance", "stale", "missing", "bias")
"""Measures of which less is better."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured; None where the profile, or its comparison, can't tell."""

    density: float | None
    coverage: float | None
    conservation: float | None
    stale: Staleness | None
    overlap: ProfileOverlap | None
    bias: float | None = None
    executed: float | None = None
    chance: float | None = None

    def values(self) -> dict[str, float | None]:
        """One number for each of `MEASURES`."""
        return {
            "density": self.density,
            "coverage": self.coverage,
            "chance": self.chance,
            "conservation": self.conservation,
            "stale": None if self.stale is None else self.stale.share,
            "missing": None if self.stale is None else self.stale.functions,
            "executed": self.executed,
            "bias": self.bias,
            "overlap": None if self.overlap is None else self.overlap.similarity,
        }


@dataclass(frozen=True, slots=True)
class Gates:
    """Limits by measure, see `MEASURES`; the least that is good, for `NO_MORE` the most."""

    limits: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Gates:
        """Of options by their names, `max_stale` say; raises InputError for an impossible share."""
        words = {name: ("max_" if name in NO_MORE else "min_") + name for name in MEASURES}
        limits = {n: options[w] for n, w in words.items() if options.get(w) is not None}
        for name, limit in limits.items():
            if not 0 <= limit <= (np.inf if name == "density" else 1):
                raise InputError(f"{words[name]}: {limit} is no share", cure="Give 0 to 1.")
        return cls(limits)

    def failed(self, quality: Quality) -> Iterator[str]:
        """Measures that miss their limit; those that can't be known miss it too."""
        values = quality.values()
        for name, limit in self.limits.items():
            value = values[name]
            is_bad = value is None or (value > limit if name in NO_MORE else value < limit)
            if is_bad:
                yield name


def measure(profile: Profile, program: Program, old: Profile | None = None) -> Quality:
    """Measure a profile against a program, and another profile if there is one."""
    samples = profile.samples
    return Quality(
        density=None if samples is None else sample_quality.density(samples),
        coverage=None if samples is None else sample_quality.coverage(samples),
        conservation=profile.conservation,
        stale=profile.staleness(program),
        overlap=None if old is None else overlap(old, profile),
        bias=profile.bias,
        chance=None if profile.counted is None else chance(profile.counted),
        executed=profile.executed if old is None else executed_share(old.ran, profile.functions),
    )


def chance(count: U64) -> float | None:
    """What overlap with the truth counts (n,) lack on average by chance; None without any.

    The mean deviation of a count is the root of 2/π times it (Poisson); entries of one stack are
    alike, and deviate more. Four times the samples halve it.

    >>> round(chance(np.full(16, 100, np.uint64)), 3), round(chance(np.full(16, 400, np.uint64)), 3)
    (0.04, 0.02)
    """
    total = exact_sum(count)
    return float(np.sqrt(2 / np.pi * count).sum() / 2 / total) if total else None


def executed_share(ran: Ran | None, known: Set[str]) -> float | None:
    """Share of what ran that is in functions of these names; None where nothing is known to run.

    A profile may name functions as compilers look them up, by a hash of that, or as BOLT does,
    with the source file behind a slash.

    >>> executed_share([(("f.llvm.1", "g"), 3), (("h",), 1)], {"f"})
    0.75
    """
    total = sum(weight for _, weight in ran or ())
    known = known | {name.partition("/")[0] for name in known}
    found = sum(weight for names, weight in ran or () if not known.isdisjoint(_as_written(names)))
    return found / total if total else None


def _as_written(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (name, canonical_name(name), str(guid(canonical_name(name))))


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
