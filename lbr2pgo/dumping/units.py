"""Units of a program's debug information as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lbr2pgo.program.dwarf.compile_units import CompileUnit, units
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.support.errors import InputError

_NO_NAME = "[no name]"


def lines(debug_info: DebugInfo) -> Iterator[str]:
    """How many units each compiler made, the most first, and then every unit.

    Raises InputError if there is no debug information, or if it is damaged.
    """
    if debug_info.source is None:
        raise InputError("there are no units to show", cure=debug_info.missing_reason)
    found = units(debug_info.source.file)
    for producer, number in Counter(unit.producer for unit in found).most_common():
        yield f"{number:,} by {producer or 'a compiler that does not say its name'}"
    for unit in found:
        yield f"{unit.offset:#x} {unit.name or _NO_NAME}: {_described(unit)}"


def _described(unit: CompileUnit) -> str:
    parts = [f"DWARF {unit.version}", unit.language]
    parts.append(f"compiled in {unit.directory}" if unit.directory else "")
    parts.append(f"split off to {unit.split_file}" if unit.split_file else "")
    return ", ".join(filter(None, parts))
