"""How heavy functions and calls are by a sample profile.

>>> from lbr2pgo.profiles.llvm.text import parse
>>> found = weights(parse([b"f:9:2", b" 1: 3 h:3", b" 2: g:6", b"  1: 4", b"  2: 2"], "a profile"))
>>> found.functions
{'f': 3, 'g': 6}
>>> [(*call, count) for call, count in found.calls.items()]
[('f', '1', 'h', 3), ('f', '2', 'g', 4)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lbr2pgo.profiles.llvm.sample_profile import (
    DUPLICATED_INTO_BASE,
    FunctionSamples,
    SampleProfile,
)
from lbr2pgo.profiles.llvm.text import place_text
from lbr2pgo.profiles.weights import CallSite, ProfileWeights

PER_SAMPLE = 64
"""A stack of 32 branches makes 56 to 61 counts of the programs in docs/notes/which-profile.md."""


def weights(profile: SampleProfile, kind: str = "sample profiles") -> ProfileWeights:
    """Contexts of a function add up, and so do its inlined copies, but those that it holds too."""
    functions: Counter[str] = Counter()
    calls: Counter[CallSite] = Counter()
    for top in profile.functions.values():
        for each in with_inlined(top, DUPLICATED_INTO_BASE):
            functions[str(each.name)] += sum(each.body.values())
            for site, count in _calls(each):
                calls[site] += count
    return ProfileWeights(f"{kind} {_told_by(profile)}", dict(functions), dict(calls), PER_SAMPLE)


def with_inlined(function: FunctionSamples, passed: int = 0) -> Iterator[FunctionSamples]:
    """A function, and all that is inlined into it, but for copies with one of these attributes."""
    yield function
    for _, callee in function.inlined():
        if not callee.attributes & passed:
            yield from with_inlined(callee, passed)


def _told_by(profile: SampleProfile) -> str:
    by = "pseudo probe" if profile.is_probe_based else "source line"
    return f"by {by} and calling context" if profile.is_cs else f"by {by}"


def _calls(function: FunctionSamples) -> Iterator[tuple[CallSite, int]]:
    caller = str(function.name)
    for location, targets in function.call_targets.items():
        for name, count in targets.items():
            yield CallSite(caller, place_text(location), str(name)), count
    for location, callee in function.inlined():
        yield CallSite(caller, place_text(location), str(callee.name)), entered(callee)


def entered(function: FunctionSamples) -> int:
    """How often it was, by its head or its first line (LLVM: getHeadSamplesEstimate)."""
    if function.head:
        return function.head
    places = (*function.body, *function.callsites)
    if not places:
        return 0
    first = min(places)
    if first in function.callsites:
        return sum(map(entered, function.callsites[first].values()))
    return function.body[first]
