"""How much of a sample profile a program has no place for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lbr2pgo.model.branch_counts import END, TO, BranchCounts, aggregate
from lbr2pgo.profiles.llvm.correlate import sample_profile
from lbr2pgo.profiles.llvm.sample_names import Location, canonical_name, guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.staleness import Changed, Staleness, staleness
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import Descriptors
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.support.addresses import ByteRanges, placed_addresses
from lbr2pgo.support.arrays import Bools

Derive = Callable[[Flow, Program, DebugInfo], tuple[SampleProfile, Bools]]
"""How samples come of what ran: by LLVM's rules or by GCC's."""


def of_samples(
    profile: SampleProfile, program: Program, derive: Derive = sample_profile
) -> Staleness | None:
    """Of lines or probes; None where the program has no debug information to tell by."""
    if profile.is_probe_based and program.probes.present:
        return of_probes(profile, program.probes.descriptors)
    debug = DebugInfo(program.debug_files)
    return of_sample_profile(profile, program, debug, derive) if debug.present else None


def of_sample_profile(
    profile: SampleProfile, program: Program, debug: DebugInfo, derive: Derive = sample_profile
) -> Staleness:
    """Of a sample profile: counts at names and locations that the binary's DWARF lacks.

    Where a function is inlined plays no part: the compiler follows that. Locations of pseudo
    probes stand in no DWARF; of such profiles only the names are looked at, see `of_probes`.
    """
    wanted = {guid(name) for name, _, _ in _places(profile)}
    known = _locations(wanted, program, debug, derive)
    if wanted - known.keys():
        known = _locations(None, program, debug, derive)  # some are only inlined, anywhere
    total, placed = 0, 0
    missing: dict[str, int] = {}
    for name, location, count in _places(profile):
        total += count
        there = known.get(guid(name))
        if there is None:
            missing[str(name)] = missing.get(str(name), 0) + count
        elif profile.is_probe_based or location in there:
            placed += count
    return staleness(total, placed, missing)


def _places(profile: SampleProfile) -> Iterator[tuple[str | int, Location, int]]:
    for function in profile.functions.values():
        yield from _function_places(function)


def _function_places(function: FunctionSamples) -> Iterator[tuple[str | int, Location, int]]:
    for location, count in function.body.items():
        yield function.name, location, count
    for _, callee in function.inlined():
        yield from _function_places(callee)


def _locations(
    wanted: set[int] | None, program: Program, debug: DebugInfo, derive: Derive
) -> dict[int, set[Location]]:
    """Locations of each function's code, inlined copies included, by the hash of its name.

    Only the code of wanted functions is looked at, or all.
    """
    described = debug.functions()
    chosen = [
        wanted is None or guid(canonical_name(described.names[i])) in wanted
        for i in described.function.tolist()
    ]
    rows = np.flatnonzero(np.array(chosen, dtype=np.bool_))
    everything = _all_run(program, described.ranges.take(rows))
    profile, _ = derive(replay(everything, program), program, debug)
    found: dict[int, set[Location]] = {}
    for name, location, _ in _places(profile):
        found.setdefault(guid(name), set()).add(location)
    return found


def _all_run(program: Program, ranges: ByteRanges) -> BranchCounts:
    """Counts as if each instruction in these ranges had run once."""
    table = program.instructions_for(ranges.start)
    address = table.address[ranges.around(table.address) >= 0]
    nothing = np.zeros(len(address), dtype=np.uint64)
    known = np.full(len(address), TO | END, dtype=np.uint8)
    return aggregate(
        placed_addresses(nothing), address, address, known, nothing + np.uint64(1), nothing
    )


def of_probes(profile: SampleProfile, descriptors: Descriptors) -> Staleness:
    """Of a probe profile: counts of functions that a build lacks, or whose checksum is another one.

    What was inlined into such a function is lost with it (LLVM:
    include/llvm/Transforms/Utils/SampleProfileLoaderBaseImpl.h, profileIsValid).
    """
    matching = _ProbeMatching(descriptors)
    for function in profile.functions.values():
        matching.add(function, is_lost=False)
    return matching.result()


class _ProbeMatching:
    """Adds up what becomes of the counts of a probe profile."""

    def __init__(self, descriptors: Descriptors) -> None:
        rows = zip(descriptors.guid.tolist(), descriptors.checksum.tolist(), strict=True)
        self._checksum = dict(rows)
        self._ambiguous = set(descriptors.guid[descriptors.is_ambiguous].tolist())
        self._total = self._placed = 0
        self._missing: dict[str, int] = {}
        self._changed: dict[tuple[str, int, int], int] = {}

    def add(self, function: FunctionSamples, *, is_lost: bool) -> None:
        """Count a function and what is inlined into it; `is_lost` if its caller is lost."""
        inlined = sum(callee.total for _, callee in function.inlined())
        name, count = str(function.name), max(0, function.total - inlined)
        self._total += count
        number = guid(function.name)
        new = self._checksum.get(number)
        fits = function.checksum in (0, new) or number in self._ambiguous
        if new is None:
            self._missing[name] = self._missing.get(name, 0) + count
        elif not fits:
            key = name, function.checksum, new
            self._changed[key] = self._changed.get(key, 0) + count
        is_lost = is_lost or new is None or not fits
        self._placed += 0 if is_lost else count
        for _, callee in function.inlined():
            self.add(callee, is_lost=is_lost)

    def result(self) -> Staleness:
        """What became of all."""
        heaviest = sorted(self._changed, key=lambda key: (-self._changed[key], key))
        changed = tuple(
            Changed(
                name, self._changed[name, old, new] / self._total if self._total else 0, old, new
            )
            for name, old, new in heaviest
        )
        return staleness(self._total, self._placed, self._missing, changed)
