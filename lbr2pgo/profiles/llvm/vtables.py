"""Types of the objects whose methods are called, in a sample profile without contexts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lbr2pgo.evidence.vtable_loads import VTABLE_LOADS, VtableLoads
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.profiles.llvm.correlate import uses_fs_discriminators
from lbr2pgo.profiles.llvm.probe_functions import probed_functions, probes_of
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.source_places import InlineContexts, inline_contexts, places_of
from lbr2pgo.profiles.llvm.vtable_probes import probes_of_loads
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.code.loaded_calls import calls_through
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import OutputError


def vtable_loads(work: Work) -> VtableLoads:
    """Which virtual tables code loaded from; raises OutputError where nothing says it."""
    loads = work.told(VTABLE_LOADS)
    if loads is None or not loads.has_accesses:
        raise OutputError(
            "no sample profile was written: the recording does not say which virtual tables were "
            "used",
            cure="Record it: lbr2pgo record --data -- CMD, or leave out --vtables.",
        )
    return loads


def add_vtables(profile: SampleProfile, work: Work) -> None:
    """Add the virtual tables that code loaded from, where it stands in the profile's functions.

    As llvm-profgen does with --data-access-perftrace (LLVM:
    llvm/tools/llvm-profgen/ProfileGenerator.cpp), but for code of functions that the profile lacks;
    and by probes, which llvm-profgen does not. Raises OutputError as `vtable_loads` does.
    """
    loads = vtable_loads(work)
    address = distinct(loads.ip)
    found = (_by_probe if profile.is_probe_based else _by_line)(work, address)
    at = np.searchsorted(address, loads.ip)
    columns = (found.context, found.line, found.discriminator)
    rows = zip(*(column[at].tolist() for column in columns), loads.symbol.tolist(), strict=True)
    names = work.program.symbols.names
    for (context, line, discriminator, symbol), count in zip(
        rows, loads.count.tolist(), strict=True
    ):
        function = found.function_in(profile, context)
        if function is not None:
            function.add_vtable((line, discriminator), names[symbol], count)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where in functions, and what is inlined into them, instructions are; (n,) each."""

    context: I64
    """Row of the contexts, -1 for none."""
    line: I64
    """Or the number of a probe."""
    discriminator: I64
    contexts: InlineContexts
    name: Callable[[int], str]
    """Of the functions of these."""

    def function_in(self, profile: SampleProfile, context: int) -> FunctionSamples | None:
        """The function, or inlined copy of one, that a context is in the profile."""
        if context < 0 or (function := int(self.contexts.function[context])) < 0:
            return None
        name, parent = self.name(function), int(self.contexts.parent[context])
        if parent < 0:
            return profile.functions.get(name)
        caller = self.function_in(profile, parent)
        if caller is None:
            return None
        location = int(self.contexts.line[context]), int(self.contexts.discriminator[context])
        return caller.callsites.get(location, {}).get(name)


def _by_line(work: Work, address: PlacedAddresses) -> _Found:
    found, place = work.debug.places(address)
    places = places_of(found, is_fs=uses_fs_discriminators(work.program))
    contexts, innermost = inline_contexts(places)
    return _Found(innermost[place], *places.location(place), contexts, places.names.__getitem__)


def _by_probe(work: Work, address: PlacedAddresses) -> _Found:
    program, probes = work.program, work.program.probes
    known = probed_functions(work.debug, probes.symbols, address)
    calls = calls_through(program, address)
    table = probes_of(probes, known, address, work.compat)
    table = with_calls(table, placed_addresses(calls[calls > 0]), work.debug, work.compat)
    row = probes_of_loads(table, address, calls, program, work.debug)
    tree = table.tree
    none = np.zeros(len(tree), np.int64)
    site = tree.site.astype(np.int64)
    contexts = InlineContexts(np.where(site > 0, tree.parent, -1), site, none, tree.function)
    return _Found(
        np.append(table.node, -1)[row].astype(np.int64),
        np.append(table.index, 0)[row].astype(np.int64),
        np.zeros(len(row), np.int64),
        contexts,
        tree.descriptors.name,
    )
