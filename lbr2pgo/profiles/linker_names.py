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
    functions are left without, by reason (`profiles.formats.propeller.UNNAMED`).
    """
    known = symbols.functions_at(starts)
    shared = _shared({name for names in known.values() for name in names}, symbols)
    found, lost = [], Counter[str]()
    for start in starts:
        names = known.get(start, ())
        whole = [name for name in names if not _SEPARATORS & set(name)]
        unique = tuple(name for name in whole if name not in shared)
        if not unique:
            lost["two_of_one_name" if whole else "odd_name" if names else "no_symbol"] += 1
        found.append(unique)
    return found, lost


def _shared(names: set[str], symbols: Symbols) -> set[str]:
    """Those of these names that functions at several addresses have."""
    rows_of = symbols.names.rows_of({os.fsencode(name) for name in names})
    places = {
        name: {int(symbols.start[row]) for row in rows if symbols.is_function[row]}
        for name, rows in rows_of.items()
    }
    return {os.fsdecode(name) for name, starts in places.items() if len(starts) > 1}
