"""Functions by what clang tells them by: a name and, where several have it, a source file.

LLVM: lib/CodeGen/BasicBlockSectionsProfileReader.cpp, where a module's name is that of its compile
unit without a leading `./`. The build that reads the clusters must have debug information, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.linker.linker_names import is_plain, names_at, places_of
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.support.addresses import placed_addresses

_SHARED = "two_of_one_name"


@dataclass(frozen=True, slots=True)
class Named:
    """All names of a function; none where clang could not tell it from others."""

    names: tuple[str, ...]
    module: str = ""
    """The source file that it is of, where others have the names too."""


def compiler_names(
    starts: Sequence[int], symbols: Symbols, debug: DebugInfo
) -> tuple[list[Named], Mapping[str, int]]:
    """The names of the function at each address, and how many have none, by reason."""
    unique, lost = names_at(starts, symbols)
    if not lost.get(_SHARED):
        return [Named(names) for names in unique], lost
    rest = [start for start, names in zip(starts, unique, strict=True) if not names]
    by_file = _by_file(rest, symbols, debug)
    found = [
        Named(names) if names else by_file.get(start, Named(()))
        for start, names in zip(starts, unique, strict=True)
    ]
    return found, {**lost, _SHARED: lost[_SHARED] - len(by_file)}


def _by_file(starts: Sequence[int], symbols: Symbols, debug: DebugInfo) -> dict[int, Named]:
    """Those that are the only ones of their name in their source file."""
    known = symbols.functions_at(starts)
    names = {name for own in known.values() for name in own if is_plain(name)}
    places = places_of(names, symbols)
    every = sorted({start for those in places.values() for start in those})
    files = debug.unit_names(placed_addresses(np.array(every, np.uint64)))
    module = dict(zip(every, map(_module, files), strict=True))
    return {
        start: Named(own, module[start])
        for start in known
        if (own := tuple(name for name in known[start] if _is_only(name, start, places, module)))
    }


def _is_only(
    name: str, start: int, places: Mapping[str, set[int]], module: Mapping[int, str]
) -> bool:
    own = module.get(start, "")
    others = places.get(name, set()) - {start}
    return bool(own) and name in places and own not in {module[other] for other in others}


def _module(file: str | None) -> str:
    """As clusters name it; nothing for a file that they can't."""
    plain = re.sub(r"^(\./+)+", "", file or "")
    return plain if is_plain(plain.replace(os.sep, "")) else ""
