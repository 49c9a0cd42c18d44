"""Functions by what a person types: a name, or an address in code that has none."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from lbr2pgo.errors import InputError
from lbr2pgo.program.program import Program

_SUGGESTIONS = 5
_MOST_COMPARED = 20_000
"""Names that are compared letter by letter, which is slow; more take turns by their length."""


def find_function(program: Program, wanted: str) -> int:
    """Row in `program.regions` of a function, by its name or by an address (`0x…`) inside it.

    Raises InputError that tells near matches.
    """
    row = program.regions.by_name(wanted)
    if row is None:
        row = _at_address(program, wanted)
    if row is not None:
        return row
    names = [name for name in program.functions.name if name]
    near = near_matches(wanted, names)
    raise InputError(
        f"no function is called {wanted}",
        where=program.image.path,
        cure=f"Near matches: {', '.join(near)}."
        if near
        else "Give a function's linkage name, or an address inside it (0x…).",
    )


def _at_address(program: Program, text: str) -> int | None:
    try:
        address = int(text, 16) if text.startswith("0x") else -1
    except ValueError:
        return None
    if not 0 <= address < 1 << 64:
        return None
    row = int(program.regions.containing(np.array([address], np.uint64))[0])
    return None if row < 0 else row


def near_matches(wanted: str, names: Sequence[str]) -> list[str]:
    """Names that were perhaps meant: those that hold the text, then those that look like it."""
    lower = wanted.lower()
    holding = sorted({name for name in names if lower in name.lower()}, key=len)
    by_length = sorted(set(names), key=lambda name: abs(len(name) - len(wanted)))
    alike = get_close_matches(wanted, by_length[:_MOST_COMPARED], _SUGGESTIONS)
    return list(dict.fromkeys([*holding[:_SUGGESTIONS], *alike]))[:_SUGGESTIONS]
