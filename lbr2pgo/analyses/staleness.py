"""How much of a profile speaks of code that a binary does not have (any more)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.model.branch_counts import END, TO, BranchCounts, aggregate
from lbr2pgo.profiles.bolt.fdata.fdata_tables import NOT_A_SYMBOL, Fdata
from lbr2pgo.profiles.llvm.correlate import sample_profile
from lbr2pgo.profiles.llvm.sample_names import Location, canonical_name, guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.propeller.written import Laid
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import Descriptors
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.support.addresses import ByteRanges, image_addresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import exact_sum

_NAMED = 5
"""How many of the missing functions are named."""


# A checksum of control flow: which blocks follow each one, how many such followers there are, and
# how many calls (LLVM: lib/Transforms/IPO/SampleProfileProbe.cpp, computeCFGHash).
_FLOW = (1 << 48) - 1
_CALLS = 0xFFF


@dataclass(frozen=True, slots=True)
class Changed:
    """A function whose control flow is another one now: the compiler drops its counts."""

    function: str
    share: float
    """Of all counts, from 0 to 1."""
    old: int
    """Checksum in the profile."""
    new: int

    def why(self) -> str:
        """What the checksums tell of the change."""
        calls = self.old >> 48 & _CALLS, self.new >> 48 & _CALLS
        flow = "other branches" if self.old & _FLOW != self.new & _FLOW else "the same branches"
        return f"{flow}, {calls[0]} calls" + (f", now {calls[1]}" if calls[0] != calls[1] else "")


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of a profile the binary does not have; shares of all counts, from 0 to 1."""

    share: float
    """Counts at places that are not there, or runs that the code can't have made."""
    functions: float
    """Counts in functions that are not there, a part of the above."""
    missing: tuple[str, ...] = ()
    """The heaviest of those functions."""
    changed: tuple[Changed, ...] = ()
    """Functions of a probe profile that can't be used, the heaviest first."""


def of_flow(flow: Flow) -> Staleness:
    """Of a recording: the fall-throughs that contradict the code."""
    count = flow.judged.runs.count
    total, valid = int(count.sum()), int(count[flow.judged.valid].sum())
    return Staleness(1 - valid / total if total else 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Counts of a profile that still have a place to go to, or have none."""

    total: int
    placed: int
    missing: dict[str, int]
    """Counts of each function that is not there."""

    def result(self) -> Staleness:
        if not self.total:
            return Staleness(0.0, 0.0)
        heaviest = sorted(self.missing, key=lambda name: (-self.missing[name], name))
        return Staleness(
            share=1 - self.placed / self.total,
            functions=sum(self.missing.values()) / self.total,
            missing=tuple(heaviest[:_NAMED]),
        )


# ---------------------------------------------------------------------------- sample profiles


Derive = Callable[[Flow, Program, DebugInfo], tuple[SampleProfile, Bools]]
"""How samples come of what ran: by LLVM's rules or by GCC's."""


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
    return _Weights(total, placed, missing).result()


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
        image_addresses(nothing), address, address, known, nothing + np.uint64(1), nothing
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
        found = _Weights(self._total, self._placed, self._missing).result()
        heaviest = sorted(self._changed, key=lambda key: (-self._changed[key], key))
        changed = tuple(
            Changed(
                name, self._changed[name, old, new] / self._total if self._total else 0, old, new
            )
            for name, old, new in heaviest
        )
        return replace(found, changed=changed)


# ---------------------------------------------------------------------------- fdata


def of_fdata(fdata: Fdata, program: Program) -> Staleness:
    """Of an fdata file: counts of branches or samples at names and offsets without code."""
    name, offset, is_symbol, count = _fdata_places(fdata)
    functions = discover(program.image, program.symbols)
    at = functions.numbers_of(fdata.names, bolted=fdata.bolted)
    owner = np.where(is_symbol != NOT_A_SYMBOL, at[name], -1) if len(at) else name
    inside = is_symbol != NOT_A_SYMBOL
    placed = inside & (owner >= 0)
    placed[placed] = offset[placed] < functions.max_size[owner[placed]]
    start = functions.start[owner[placed]]
    placed[placed] = program.instructions_for(start).index_of(start + offset[placed]) >= 0
    missing: dict[str, int] = {}
    for i in np.flatnonzero(inside & (owner < 0)).tolist():
        text = fdata.names[name[i]]
        missing[text] = missing.get(text, 0) + int(count[i])
    return _Weights(exact_sum(count[inside]), exact_sum(count[placed]), missing).result()


def of_clusters(clusters: Sequence[Laid], program: Program) -> Staleness:
    """Of Propeller's clusters: blocks that the map of a program lacks, each counting once.

    Raises InputError where the program has no map.
    """
    blocks = open_block_map(program.image)
    known: dict[str, set[int]] = {}
    names = program.symbols.functions_at(blocks.entry.tolist())
    for function, block in zip(blocks.function.tolist(), blocks.identity.tolist(), strict=True):
        for name in names.get(int(blocks.entry[function]), ()):
            known.setdefault(name, set()).add(block)
    total = placed = 0
    missing: dict[str, int] = {}
    for each in clusters:
        there = [known[name] for name in each.names if name in known]
        total += len(each.blocks)
        placed += max((len(own.intersection(each.blocks)) for own in there), default=0)
        if not there:
            missing[each.names[0]] = missing.get(each.names[0], 0) + len(each.blocks)
    return _Weights(total, placed, missing).result()


def _fdata_places(fdata: Fdata) -> tuple[I64, U64, I64, U64]:
    """Name, offset, kind and count of both ends of each branch, and of each sample."""
    columns = []
    if fdata.branches is not None:
        b = fdata.branches
        columns.append((b.from_name, b.from_offset, b.from_is_symbol, b.count))
        columns.append((b.to_name, b.to_offset, b.to_is_symbol, b.count))
    if fdata.samples is not None:
        s = fdata.samples
        columns.append((s.name, s.offset, s.is_symbol, s.count))
    empty = tuple(np.empty(0, kind) for kind in (np.int32, np.uint64, np.uint8, np.uint64))
    name, offset, kind, count = (
        np.concatenate(parts) for parts in zip(*columns, empty, strict=True)
    )
    return (
        name.astype(np.int64),
        offset.astype(np.uint64),
        kind.astype(np.int64),
        count.astype(np.uint64),
    )
