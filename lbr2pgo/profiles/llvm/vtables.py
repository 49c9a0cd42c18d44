"""Types of the objects whose methods are called, in a sample profile by source line."""

from __future__ import annotations

from lbr2pgo.evidence.vtable_loads import VTABLE_LOADS
from lbr2pgo.profiles.llvm.correlate import uses_fs_discriminators
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.source_places import InlineContexts, inline_contexts, places_of
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import OutputError


def add_vtables(profile: SampleProfile, work: Work) -> None:
    """Add the virtual tables that code loaded from, where it stands in the profile's functions.

    As llvm-profgen does with --data-access-perftrace (LLVM:
    llvm/tools/llvm-profgen/ProfileGenerator.cpp), but for code of functions that the profile lacks.
    Raises OutputError where nothing says which data was accessed.
    """
    loads = work.told(VTABLE_LOADS)
    if loads is None or not loads.has_accesses:
        raise OutputError(
            "no sample profile was written: the recording does not say which virtual tables were "
            "used",
            cure="Record it: lbr2pgo record --data -- CMD, or leave out --vtables.",
        )
    program = work.program
    address = distinct(loads.ip)
    found, place_of = work.debug.places(address)
    places = places_of(found, is_fs=uses_fs_discriminators(program))
    contexts, innermost = inline_contexts(places)
    place = place_of[address.searchsorted(loads.ip)]
    locations = zip(*(column.tolist() for column in places.location(place)), strict=True)
    rows = zip(innermost[place].tolist(), locations, loads.symbol.tolist(), strict=True)
    for (context, location, symbol), count in zip(rows, loads.count.tolist(), strict=True):
        function = _function(profile, contexts, places.names, context)
        if function is not None:
            function.add_vtable(location, program.symbols.names[symbol], count)


def _function(
    profile: SampleProfile, contexts: InlineContexts, names: tuple[str, ...], context: int
) -> FunctionSamples | None:
    """The function, or inlined copy of one, that a context is in the profile."""
    if context < 0:
        return None
    name, parent = names[int(contexts.function[context])], int(contexts.parent[context])
    if parent < 0:
        return profile.functions.get(name)
    caller = _function(profile, contexts, names, parent)
    if caller is None:
        return None
    location = int(contexts.line[context]), int(contexts.discriminator[context])
    return caller.callsites.get(location, {}).get(name)
