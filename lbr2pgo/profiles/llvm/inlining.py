"""Which calls clang inlines because a sample profile has counts of a copy of the callee there.

Clang asks whether a copy is hot, or whether a pre-inliner chose it. Then it inlines, unless the
callee is too large for that or can't be inlined at all, which only its own analysis tells.
Source: LLVM 22: lib/Transforms/IPO/SampleProfile.cpp, callsiteIsHot and shouldInlineCandidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.density import HOT
from lbr2pgo.profiles.llvm.sample_names import Context, Frame
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.sample_summary import summarize


class InlinedCopy(NamedTuple):
    """A callee that would be inlined."""

    context: Context
    """From a function with code of its own to the callee."""
    samples: int
    """In it, and in all that is inlined into it."""


def inlined_copies(profile: SampleProfile) -> list[InlinedCopy]:
    """All of them, most samples first; what is inlined into a copy only if that one is, too."""
    hot = next(row.minimum for row in summarize(profile).detailed if row.cutoff == HOT)

    def is_chosen(function: FunctionSamples) -> bool:
        if profile.is_preinlined:
            return bool(function.attributes & SHOULD_BE_INLINED)
        return function.total >= hot > 0

    def copies(function: FunctionSamples, around: Context) -> Iterator[InlinedCopy]:
        for location, callee in function.inlined():
            if is_chosen(callee):
                callers = (*around[:-1], Frame(function.name, location))
                context = (*callers, Frame(callee.name))
                yield InlinedCopy(context, callee.total)
                yield from copies(callee, context)

    found = []
    for function in profile.ordered():
        context = function.context or (Frame(function.name),)
        if len(context) > 1 and is_chosen(function):
            found.append(InlinedCopy(context, function.total))
        found += copies(function, context)
    return sorted(found, key=lambda copy: -copy.samples)
