"""From counted instructions to the samples that GCC looks up.

They are those of LLVM's sample profile but for discriminators, which GCC does not pack, and names:
GCC looks a function up under its name up to the first dot, so that clones (`.isra.0`, `.part.0`,
`.constprop.0`, `.cold`) are one with it, and under the name of a constructor's or destructor's base
variant (GCC: auto-profile.cc, afdo_string_table::get_index_by_decl, and bug 64346).
"""

from __future__ import annotations

import re

from lbr2pgo.profiles.llvm.correlate import profile_table
from lbr2pgo.profiles.llvm.sample_names import Name, canonical_name
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import Bools

_UNIFIED = re.compile(r"(_ZN.*[CD])4(E\w*)")
"""`C4` and `D4` stand for all variants of a constructor or destructor (GCC: cp/mangle.cc)."""


def gcc_samples(flow: Flow, program: Program, debug: DebugInfo) -> tuple[SampleProfile, Bools]:
    """The samples of a replayed recording, by the names that GCC knows.

    Also returns, for each fall-through of `flow.judged`, whether its code has source locations.
    """
    table, is_located = profile_table(flow, program, debug, for_gcc=True)
    found = SampleProfile()
    for each in table.tree().functions.values():
        if gcc_name(each.name):
            _merge(found.function(gcc_name(each.name)), each)
    return found, is_located


def gcc_name(name: Name) -> str:
    """The name under which GCC looks a function up; "" where it can't.

    >>> gcc_name("hot.isra.0"), gcc_name("_ZN5ShapeC4EPKc"), gcc_name("_ZN5ShapeD4Ev.cold")
    ('hot', '_ZN5ShapeC2EPKc', '_ZN5ShapeD2Ev')
    """
    plain = canonical_name(str(name), "all")
    unified = _UNIFIED.fullmatch(plain)
    return f"{unified[1]}2{unified[2]}" if unified else plain


def _merge(into: FunctionSamples, other: FunctionSamples) -> int:
    """Add one's counts to the other, by the names that GCC knows; gives the sum of them."""
    into.head += other.head
    for location, count in other.body.items():
        into.add_body(location, count)
    for location, targets in other.call_targets.items():
        for name, count in targets.items():
            if gcc_name(name):
                into.add_call(location, gcc_name(name), count)
    added = sum(other.body.values())
    for location, callee in other.inlined():
        if gcc_name(callee.name):
            added += _merge(into.callee(location, gcc_name(callee.name)), callee)
    into.total += added
    return added
