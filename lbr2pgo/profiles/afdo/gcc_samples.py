"""From counted instructions to the samples that GCC looks up.

They are those of LLVM's sample profile but for discriminators, which GCC does not pack, and names
(`lbr2pgo.profiles.afdo.gcc_names`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from lbr2pgo.profiles.afdo.afdo import USUAL_VERSION
from lbr2pgo.profiles.afdo.gcc_functions import GccFunctions, gcc_functions
from lbr2pgo.profiles.afdo.gcc_names import gcc_name
from lbr2pgo.profiles.llvm.correlate import profile_table
from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import Bools


def gcc_samples(
    flow: Flow, program: Program, debug: DebugInfo, version: int = USUAL_VERSION
) -> tuple[SampleProfile, Bools]:
    """The samples of a replayed recording, by the names that GCC knows.

    Also returns, for each fall-through of `flow.judged`, whether its code has source locations.
    """
    return samples_of(gcc_functions(flow, program, debug, version), flow, program, debug, version)


def samples_of(
    named: GccFunctions, flow: Flow, program: Program, debug: DebugInfo, version: int
) -> tuple[SampleProfile, Bools]:
    """As `gcc_samples`, of functions that have their names already."""
    table, is_located = profile_table(flow, program, debug, for_gcc=named.functions)
    name_of = cache(partial(gcc_name, version=version))
    found = SampleProfile()
    for each in table.tree().functions.values():
        name = name_of(each.name)
        if name:
            _merge(found.function(name), each, _within(named, name, name_of))
    return found, is_located


def _within(
    named: GccFunctions, caller: str, name_of: Callable[[Name], str]
) -> Callable[[Name], str]:
    """Names of what is inlined into a function."""
    return lambda name: named.called_in(caller, name_of(name)) if named.files else name_of(name)


def _merge(into: FunctionSamples, other: FunctionSamples, name_of: Callable[[Name], str]) -> int:
    """Add one's counts to the other, by the names that GCC knows; gives the sum of them."""
    into.head += other.head
    for location, count in other.body.items():
        into.add_body(location, count)
    for location, targets in other.call_targets.items():
        for called, count in targets.items():
            if name := name_of(called):
                into.add_call(location, name, count)
    added = sum(other.body.values())
    for location, callee in other.inlined():
        if name := name_of(callee.name):
            added += _merge(into.callee(location, name), callee, name_of)
    into.total += added
    return added
