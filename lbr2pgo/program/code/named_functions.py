"""Functions by what a person types: a name, or an address in code that has none."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from lbr2pgo.program.demangle import demangled, short_name, without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError

_SUGGESTIONS = 5
_MOST_COMPARED = 20_000
"""Names that are compared letter by letter, which is slow; more take turns by their length."""


def find_function(program: Program, wanted: str) -> int:
    """Row in `program.regions` of a function, by its name or by an address (`0x…`) inside it.

    A name is the linkage name, or as people write it: that of C++ with or without its signature,
    and of static functions without what makes theirs unique. Raises InputError
    that tells near matches, or all functions that a C++ name stands for if there are several.
    """
    row = program.regions.by_name(wanted)
    if row is None:
        row = _at_address(program, wanted)
    if row is None:
        row = _by_cpp_name(program, wanted)
    if row is not None:
        return row
    names = [*filter(None, program.functions.name), *program.regions.stubs.values()]
    near = near_matches(wanted, [*names, *_cpp_names(program)])
    raise InputError(
        f"no function is called {wanted}",
        where=program.image.path,
        cure=f"Near matches: {', '.join(near)}."
        if near
        else "Give a function's linkage name, or an address inside it (0x…).",
    )


def _cpp_names(program: Program) -> dict[str, list[int]]:
    """Rows of `program.regions` by the C++ names of their functions."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(program.regions.name):
        if name.startswith("_Z") or ".__uniq." in name:
            rows.setdefault(demangled(name), []).append(row)
    return rows


def _by_cpp_name(program: Program, wanted: str) -> int | None:
    """The only function of this C++ name, with its fragments; raises InputError for several."""
    regions, named = program.regions, _cpp_names(program)
    rows = named.get(wanted) or [
        row
        for name, each in named.items()
        if wanted and wanted in name
        for row in each
        if without_unique_suffix(short_name(regions.name[row])) == wanted
    ]
    roots = distinct(regions.parent[rows]).tolist()
    if len(roots) > 1:
        names = ", ".join(regions.name[row] for row in roots[:_SUGGESTIONS])
        raise InputError(
            f"{len(roots)} functions are called {wanted}",
            where=program.image.path,
            cure=f"Give a linkage name: {names}{', …' if len(roots) > _SUGGESTIONS else ''}.",
        )
    return roots[0] if roots else None


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
