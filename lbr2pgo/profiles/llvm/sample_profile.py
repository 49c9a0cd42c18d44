"""The in-memory model of LLVM's sample profiles, whatever file format they come from.

Source: LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from lbr2pgo.profiles.llvm.sample_names import (
    Context,
    Key,
    Location,
    Name,
    context_order_key,
    order_key,
)
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

LARGEST_COUNT = 2**64 - 1
LARGEST_LINE = 0xFFFF
"""LLVM keeps 16 bits of a line offset."""

DUPLICATED_INTO_BASE = 4
"""With WAS_INLINED and SHOULD_BE_INLINED, bits of `FunctionSamples.attributes`
(LLVM: ContextAttributeMask)."""

Counts = dict[Name, int]


def add_saturating(a: int, b: int, weight: int = 1) -> int:
    """`a + b * weight`, at most 2**64 - 1 (LLVM: SaturatingMultiplyAdd)."""
    return min(a + b * weight, LARGEST_COUNT)


@dataclass(slots=True)
class FunctionSamples:
    """Counts of one function, or of one inlined copy of it."""

    name: Name
    total: int = 0
    """Samples in the function and all that is inlined into it."""
    head: int = 0
    """Calls that were seen; 0 for inlined copies."""
    body: dict[Location, int] = field(default_factory=dict)
    call_targets: dict[Location, Counts] = field(default_factory=dict)
    """Calls that were not inlined."""
    callsites: dict[Location, dict[Name, FunctionSamples]] = field(default_factory=dict)
    """Inlined copies."""
    vtables: dict[Location, Counts] = field(default_factory=dict)
    """Virtual tables of the objects whose methods were called."""
    checksum: int = 0
    """Hash of the function's CFG, in profiles of pseudo probes; 0 where unknown."""
    attributes: int = 0
    context: Context | None = None
    """Calling context, in context-sensitive profiles; its last frame is `name`."""

    @property
    def key(self) -> Key:
        """What tells this function apart among the profile's functions."""
        return self.name if self.context is None else self.context

    def add_body(self, location: Location, count: int, weight: int = 1) -> None:
        """Add to a location's count."""
        self.body[location] = add_saturating(self.body.get(location, 0), count, weight)

    def add_call(self, location: Location, target: Name, count: int) -> None:
        """Add calls of a function that is not inlined there."""
        _add(self.call_targets, location, target, count)

    def add_vtable(self, location: Location, vtable: Name, count: int) -> None:
        """Add calls through a virtual table."""
        _add(self.vtables, location, vtable, count)

    def callee(self, location: Location, name: Name) -> FunctionSamples:
        """The inlined copy of a function at a location, made if it is not there."""
        callees = self.callsites.setdefault(location, {})
        if name not in callees:
            callees[name] = FunctionSamples(name)
        return callees[name]

    def locations(self) -> list[Location]:
        """Locations with a count or with calls, in order."""
        return sorted(self.body.keys() | self.call_targets.keys())

    def calls(self, location: Location) -> list[tuple[Name, int]]:
        """Call targets of a location: most called first, then by name."""
        targets = self.call_targets.get(location, {})
        return sorted(targets.items(), key=lambda item: (-item[1], order_key(item[0])))

    def inlined(self) -> Iterator[tuple[Location, FunctionSamples]]:
        """Inlined copies, ordered by location, then by name."""
        for location in sorted(self.callsites):
            callees = self.callsites[location]
            for name in sorted(callees, key=order_key):
                yield location, callees[name]

    def merge(self, other: FunctionSamples, weight: int = 1) -> int:
        """Add another profile of this function, each count times `weight`.

        Where both have checksums and they differ, the two are of different code: `other`, or that
        part of it, is left out. Returns how many functions and inlined copies were left out.
        (LLVM: FunctionSamples::merge.)
        """
        if self.checksum not in (0, other.checksum):
            return 1
        self.checksum = other.checksum
        self.total = add_saturating(self.total, other.total, weight)
        self.head = add_saturating(self.head, other.head, weight)
        for location, count in other.body.items():
            self.add_body(location, count, weight)
        for mine, theirs in (
            (self.call_targets, other.call_targets),
            (self.vtables, other.vtables),
        ):
            for location, counts in theirs.items():
                for name, count in counts.items():
                    _add(mine, location, name, count, weight)
        left_out = 0
        for location, callee in other.inlined():
            if callee.name not in self.callsites.get(location, {}):
                self.callee(location, callee.name).attributes = callee.attributes
            left_out += self.callee(location, callee.name).merge(callee, weight)
        return left_out


def _add(
    counts: dict[Location, Counts], location: Location, name: Name, count: int, weight: int = 1
) -> None:
    there = counts.setdefault(location, {})
    there[name] = add_saturating(there.get(name, 0), count, weight)


@dataclass(slots=True)
class SampleProfile:
    """A whole profile: functions that stand alone, and what kind of profile it is."""

    functions: dict[Key, FunctionSamples] = field(default_factory=dict)
    is_probe_based: bool = False
    """Locations are pseudo probes, functions have checksums."""
    is_cs: bool = False
    """Functions are told apart by calling context."""
    is_preinlined: bool = False
    """A pre-inliner has decided, see SHOULD_BE_INLINED."""
    is_fs: bool = False
    """Discriminators are flow-sensitive ones (32 bits)."""
    is_partial: bool = False
    """The profile is of shared code; what it lacks is not cold."""
    symbols: frozenset[str] | None = None
    """All functions of the profiled binary, so that a cold one can be told from a new one."""

    def function(self, key: Key) -> FunctionSamples:
        """The function of a name or context, made if it is not there."""
        if key not in self.functions:
            if isinstance(key, tuple):
                self.functions[key] = FunctionSamples(key[-1].function, context=key)
            else:
                self.functions[key] = FunctionSamples(key)
        return self.functions[key]

    def ordered(self, *, by_name: bool = False) -> list[FunctionSamples]:
        """Functions as LLVM writes them: most samples first, then by name or context."""
        return sorted(self.functions.values(), key=_name_order if by_name else _writing_order)

    def merge(self, other: SampleProfile, weight: int = 1) -> int:
        """Add another profile, each count times `weight` (llvm-profdata merge --sample).

        Returns how many functions and inlined copies were left out since their checksums differ.
        Raises InputError where profiles of different kinds can't be merged.
        """
        for flag, kind in (("is_probe_based", "pseudo probes"), ("is_cs", "calling contexts")):
            if self.functions and getattr(self, flag) != getattr(other, flag):
                raise InputError(f"a profile of {kind} can't be merged with one without")
            setattr(self, flag, getattr(other, flag))
        self.is_preinlined |= other.is_preinlined
        self.is_fs |= other.is_fs
        self.is_partial |= other.is_partial
        if other.symbols is not None:
            self.symbols = (self.symbols or frozenset()) | other.symbols
        left_out = 0
        for key, function in other.functions.items():
            if key not in self.functions:
                self.function(key).attributes = function.attributes
            left_out += self.functions[key].merge(function, weight)
        return left_out


def _writing_order(function: FunctionSamples) -> tuple[int, object]:
    return -function.total, _name_order(function)


def _name_order(function: FunctionSamples) -> tuple[int, object]:
    if function.context is None:
        return 0, order_key(function.name)
    return 1, context_order_key(function.context)
