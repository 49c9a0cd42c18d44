"""From counted instructions to the samples that GCC looks up.

They are those of LLVM's sample profile but for discriminators, which GCC does not pack, and names
(`lbr2pgo.profiles.afdo.gcc_names`).

Static functions of several source files may share a name, and so they share counts up to version 2
of the format. Version 3 says of a name which file it is of, and GCC takes a suffix `.lto_priv.N`
for a function of that file: so each file's gets one of its own, the same in every profile
(GCC 16: auto-profile.cc, string_table::get_original_name).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from zlib import crc32

import numpy as np

from lbr2pgo.evidence.first_times import FirstTimes
from lbr2pgo.profiles.afdo.afdo import FIRST_WITH_TIMES, USUAL_VERSION
from lbr2pgo.profiles.afdo.gcc_names import gcc_name, symbol_name
from lbr2pgo.profiles.llvm.correlate import profile_table
from lbr2pgo.profiles.llvm.counted_code import starts
from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.symbol_names import by_symbol
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.dwarf.function import DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import Bools


@dataclass(frozen=True, slots=True)
class GccFunctions:
    """What ran, and which source files it is of; without directories, as GCC compares them."""

    functions: DwarfFunctions
    compiled: dict[Name, str]
    """The file that each function was compiled from; of version 3 only."""
    files: dict[Name, str]
    """Those of the functions that are told apart by them."""

    def called_in(self, caller: str, name: str) -> str:
        """The name of what stands as `name` in code of the caller's file."""
        own = _of_file(name, self.compiled.get(caller, ""))
        return own if own in self.files else name


def gcc_functions(flow: Flow, program: Program, debug: DebugInfo, version: int) -> GccFunctions:
    """Functions that ran, as GCC names them in this version of its format."""
    known = debug.functions_for(starts(flow))
    found = by_symbol(known, program.functions, partial(symbol_name, version=version))
    return _told_apart(found, debug) if version >= FIRST_WITH_TIMES else GccFunctions(found, {}, {})


def _told_apart(found: DwarfFunctions, debug: DebugInfo) -> GccFunctions:
    units = _base_names(debug.unit_names(found.range_start))
    names = [found.names[number] for number in found.function.tolist()]
    at_home = _at_home(found.range_start, units, debug)
    homes: dict[str, set[str]] = {}
    for name, unit, is_home in zip(names, units, at_home, strict=True):
        homes.setdefault(name, set()).update([unit] if is_home else ())
    apart = [
        _of_file(name, unit) if len(homes[name]) > 1 and unit in homes[name] else name
        for name, unit in zip(names, units, strict=True)
    ]
    numbers: dict[str, int] = {}
    function = [numbers.setdefault(name, len(numbers)) for name in apart]
    functions = replace(found, function=np.array(function, np.int32), names=tuple(numbers))
    rows = zip(names, apart, units, strict=True)
    files: dict[Name, str] = {new: unit for old, new, unit in rows if new != old}
    compiled: dict[Name, str] = dict(zip(apart, units, strict=True))
    return GccFunctions(functions, compiled, files)


def _at_home(begins: PlacedAddresses, units: list[str], debug: DebugInfo) -> list[bool]:
    """Whether each function is of the file that was compiled, and not of one that it includes."""
    lines = debug.lines(begins)
    paths = [lines.files[file] if file >= 0 else None for file in lines.file.tolist()]
    return [
        unit != "" and unit == file for unit, file in zip(units, _base_names(paths), strict=True)
    ]


def _base_names(paths: Iterable[str | None]) -> list[str]:
    return [os.path.basename(path or "") for path in paths]


def _of_file(name: str, file: str) -> str:
    return f"{name}.lto_priv.{crc32(os.fsencode(file))}"


def first_seen(times: FirstTimes, functions: DwarfFunctions) -> dict[Name, int]:
    """When a branch from or to each function was first in a sample, by the name that GCC knows.

    Text without times has none that mean anything.
    """
    place = functions.containing(times.address)
    seen: dict[Name, int] = {}
    rows = np.flatnonzero(place >= 0)
    numbers = functions.function[place[rows]].tolist()
    for function, time in zip(numbers, times.time[rows].tolist(), strict=True):
        name = gcc_name(functions.names[function], FIRST_WITH_TIMES)
        seen[name] = min(seen.get(name, time), time)
    return seen


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
