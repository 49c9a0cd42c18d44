"""Counts of a sample profile that is meant to be committed: in steps of `DIGITS` digits.

The compiler decides by shares of counts, and by whether a count is as large as those that make up a
part of all (LLVM: ProfileSummaryBuilder): no step leads across one of these. It adds 1 to every
weight, so that small counts decide as they are (LLVM: SampleProfile.cpp, generateMDProfMetadata),
and no count is scaled: of 794 functions of Lua, 56 are compiled to other code with ten times the
counts, 6 with steps of four digits, and none with these. That is so of samples. Where flow is
conserved to the last count, it is not in steps of any size, and the compiler makes a flow of that
which runs where nothing ran: exact counts are left as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from lbr2pgo.profiles.llvm.sample_profile import Counts, FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.sample_summary import summarize

DIGITS = 5


def in_steps(profile: SampleProfile) -> SampleProfile:
    """The same with counts in steps."""
    borders = sorted({cutoff.minimum for cutoff in summarize(profile).detailed})
    functions = {
        key: _mapped(function, lambda count: step_below(count, borders))
        for key, function in profile.functions.items()
    }
    return replace(profile, functions=functions)


def step_below(count: int, borders: Sequence[int] = ()) -> int:
    """The last step up to a count, of which ascending `borders` are some.

    >>> step_below(12_345), step_below(1_234_567), step_below(1_234_567, [1_234_560])
    (12345, 1234500, 1234560)
    """
    size = int(10 ** max(len(str(count)) - DIGITS, 0))
    at = bisect_right(borders, count)
    return max(count // size * size, borders[at - 1] if at else 0)


def _mapped(function: FunctionSamples, step: Callable[[int], int]) -> FunctionSamples:
    def counts(of: Counts) -> Counts:
        return {name: step(count) for name, count in of.items()}

    return replace(
        function,
        total=step(function.total),
        head=step(function.head),
        body={location: step(count) for location, count in function.body.items()},
        call_targets={location: counts(of) for location, of in function.call_targets.items()},
        vtables={location: counts(of) for location, of in function.vtables.items()},
        callsites={
            location: {name: _mapped(callee, step) for name, callee in callees.items()}
            for location, callees in function.callsites.items()
        },
    )
