"""Functions by the names of their symbols, where DWARF has no linkage name of theirs.

GCC writes none for what is in an unnamed namespace, and looks it up under its symbol's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lbr2pgo.program.code.functions import Functions
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions, InlineFrames
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64


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
    frames: InlineFrames, functions: DwarfFunctions, addresses: ImageAddresses, place_of: I64
) -> InlineFrames:
    """The same frames, the outermost ones with the names that these functions have.

    `place_of` numbers the frames of each address; addresses of a place stand together.
    """
    names = {name: number for number, name in enumerate(frames.names)}
    number = np.array([names.setdefault(each, len(names)) for each in functions.names], np.int32)
    first = np.flatnonzero(np.diff(place_of, prepend=-1))
    range_ = functions.containing(addresses[first])
    place = place_of[first]
    named = (range_ >= 0) & (np.diff(frames.offsets)[place] > 0)
    function = frames.function.copy()
    function[frames.offsets[place[named]]] = number[functions.function[range_[named]]]
    return replace(frames, function=function, names=tuple(names))
