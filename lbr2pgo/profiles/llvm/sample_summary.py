"""The summary in binary sample profiles: which counts are hot (LLVM: ProfileSummaryBuilder)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.profiles.llvm.sample_profile import (
    DUPLICATED_INTO_BASE,
    FunctionSamples,
    SampleProfile,
)

SCALE = 1_000_000
"""Cutoffs are shares of the total count, in millionths."""
CUTOFFS = (
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
)  # fmt: skip

_MASK = 2**64 - 1  # LLVM's sums wrap around


class Cutoff(NamedTuple):
    """The `counts` largest counts, all at least `minimum`, make up the share `cutoff`."""

    cutoff: int
    minimum: int
    counts: int


@dataclass(frozen=True)
class Summary:
    """How counts are distributed over a profile."""

    total_count: int
    max_count: int
    max_function_count: int
    """Largest head count."""
    counts: int
    functions: int
    detailed: tuple[Cutoff, ...]


def summarize(profile: SampleProfile) -> Summary:
    """The summary as LLVM computes it; contexts of a function are added up before."""
    functions = _without_contexts(profile) if profile.is_cs else list(profile.functions.values())
    frequencies: Counter[int] = Counter()
    for function in functions:
        _count_body(function, frequencies)
    total = sum(count * times for count, times in frequencies.items()) & _MASK
    return Summary(
        total_count=total,
        max_count=max(frequencies, default=0),
        max_function_count=max((function.head for function in functions), default=0),
        counts=frequencies.total(),
        functions=len(functions),
        detailed=detailed(frequencies, total),
    )


def _without_contexts(profile: SampleProfile) -> list[FunctionSamples]:
    flat: dict[Name, FunctionSamples] = {}
    for function in profile.functions.values():
        flat.setdefault(function.name, FunctionSamples(function.name)).merge(function)
    return list(flat.values())


def _count_body(function: FunctionSamples, frequencies: Counter[int]) -> None:
    for location in function.locations():
        frequencies[function.body.get(location, 0)] += 1
    for _, callee in function.inlined():
        if not callee.attributes & DUPLICATED_INTO_BASE:  # else its base has the same counts
            _count_body(callee, frequencies)


def detailed(frequencies: Counter[int], total: int) -> tuple[Cutoff, ...]:
    """All cutoffs, given how often each count is there, and the sum of them all."""
    largest_first = iter(sorted(frequencies.items(), reverse=True))
    rows, minimum, seen, reached = [], 0, 0, 0
    for cutoff in CUTOFFS:
        wanted = total * cutoff // SCALE
        while reached < wanted and (entry := next(largest_first, None)):
            minimum, times = entry
            seen += times
            reached = (reached + minimum * times) & _MASK
        rows.append(Cutoff(cutoff, minimum, seen))
    return tuple(rows)
