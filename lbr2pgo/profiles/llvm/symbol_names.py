"""Functions by the names of their symbols, where DWARF has no linkage name of theirs.

GCC writes none for what is in an unnamed namespace, and looks it up under its symbol's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lbr2pgo.profiles.llvm.source_places import pair
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions, ScopedPlaces, Scopes
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.tables import taken


def by_symbol(
    functions: DwarfFunctions, known: Functions, name_of: Callable[[str], str]
) -> DwarfFunctions:
    """The same functions; ranges at whose start no symbol has the name take a symbol's name.

    `name_of` takes off a symbol's name what was split off a function has behind it, so that it is
    part of that; "" for what is none.
    """
    place = known.containing(functions.range_start)
    numbers: dict[str, int] = {}
    function = [
        numbers.setdefault(_name(functions.names[old], known, row, start, name_of), len(numbers))
        for old, row, start in zip(
            functions.function.tolist(), place.tolist(), functions.range_start.tolist(), strict=True
        )
    ]
    return replace(functions, function=np.array(function, np.int32), names=tuple(numbers))


def _name(name: str, known: Functions, row: int, start: int, name_of: Callable[[str], str]) -> str:
    if row < 0 or int(known.start[row]) != start:
        return name
    symbols = list(filter(None, map(name_of, known.aliases(row))))
    return symbols[0] if symbols and name not in symbols else name


def outermost_by(
    found: ScopedPlaces, functions: DwarfFunctions, addresses: PlacedAddresses, place_of: I64
) -> ScopedPlaces:
    """The same places, with the names that these functions have for those that are not inlined.

    `place_of` numbers the places of addresses; addresses of a place stand together. A function
    whose parts have several names becomes several.
    """
    numbers = {name: number for number, name in enumerate(found.names)}
    number = np.array([numbers.setdefault(n, len(numbers)) for n in functions.names], np.int32)
    first = np.flatnonzero(np.diff(place_of, prepend=-1))
    first = first[found.scope[place_of[first]] >= 0]
    place, range_ = place_of[first], functions.containing(addresses[first])
    outermost = found.scopes.outermost()[found.scope[place]]
    name = found.scopes.function[outermost].astype(np.int64)
    name[range_ >= 0] = number[functions.function[range_[range_ >= 0]]]
    key, at = np.unique(pair(outermost, name), return_inverse=True)
    outermost, name = key >> 32, key & 0xFFFFFFFF
    copy = np.arange(len(outermost)) - np.searchsorted(outermost, outermost)
    scopes, size = _copies(found.scopes, int(copy.max(initial=0)) + 1), len(found.scopes)
    function, scope = scopes.function.copy(), found.scope.copy()
    function[outermost + copy * size] = name
    scope[place] += copy[at] * size
    found = replace(
        found, scope=scope, scopes=replace(scopes, function=function), names=tuple(numbers)
    )
    return found.with_scopes(found.is_used())


def _copies(scopes: Scopes, count: int) -> Scopes:
    """The same forest several times, one behind the other."""
    rows = np.tile(np.arange(len(scopes)), count)
    many = taken(scopes, rows)
    parent = np.where(many.parent < 0, -1, many.parent + np.arange(len(rows)) - rows)
    return replace(many, parent=parent.astype(np.int32))
