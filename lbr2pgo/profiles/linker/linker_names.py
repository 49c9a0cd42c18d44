"""Functions by names that a compiler or a linker can tell them by."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from lbr2pgo.program.elf.symbols import Symbols

_SEPARATORS = frozenset(" /\n\r\t")


def names_at(
    starts: Sequence[int], symbols: Symbols
) -> tuple[list[tuple[str, ...]], Mapping[str, int]]:
    """The names of the function at each address, the best first, none where there is none.

    Only those that no function elsewhere has and that a list can hold. Also gives how many
    functions are left without, by reason (`profiles.propeller.format.UNNAMED`).
    """
    known = symbols.functions_at(starts)
    places = places_of({name for names in known.values() for name in names}, symbols)
    found, lost = [], Counter[str]()
    for start in starts:
        names = known.get(start, ())
        plain = [name for name in names if is_plain(name)]
        unique = tuple(name for name in plain if len(places[name]) == 1)
        if not unique:
            lost["two_of_one_name" if plain else "odd_name" if names else "no_symbol"] += 1
        found.append(unique)
    return found, lost


def is_plain(name: str) -> bool:
    """Whether a list can hold it."""
    return _SEPARATORS.isdisjoint(name)


def places_of(names: set[str], symbols: Symbols) -> dict[str, set[int]]:
    """Where functions of each of these names begin."""
    rows_of = symbols.names.rows_of({os.fsencode(name) for name in names})
    return {
        os.fsdecode(name): {int(symbols.start[row]) for row in rows if symbols.is_function[row]}
        for name, rows in rows_of.items()
    }
