"""Code without pseudo probes: whether it could have some, and which functions could.

What the program's own build compiles has debug information, or probes do little good. Code
without it is of others: start files, the C library, the linkage table; an assembler's has no
probes either. So only a compile unit of a compiler, none of whose code has probes, lacks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.profiles.llvm.lacks import Lack
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.counted import counted
from lbr2pgo.support.sums import sums_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lbr2pgo.program.dwarf.debug_info import DebugInfo
    from lbr2pgo.program.pseudo_probes import PseudoProbes
    from lbr2pgo.support.addresses import PlacedAddresses
    from lbr2pgo.support.arrays import U8, U64, Bools

_OF_ASSEMBLERS = (".s", ".S", ".sx", ".asm")
_NAMED = 2


def lacks(
    addresses: PlacedAddresses, is_in_probed: Bools, debug: DebugInfo, probes: PseudoProbes
) -> U8:
    """`Lack` of each of (n,) addresses without a probe, of which some are in functions with any."""
    records = probes.records()
    with_probes = debug.units(placed_addresses(records.low[records.probes > 0]))
    unit, first, number = np.unique(debug.units(addresses), return_index=True, return_inverse=True)
    names = debug.unit_names(addresses[first])
    is_assembled = np.array([(name or "").endswith(_OF_ASSEMBLERS) for name in names], np.bool_)
    of_unit = np.where(np.isin(unit, with_probes), Lack.PLACE, Lack.PROBES)
    of_unit[is_assembled | (unit < 0)] = Lack.SOURCE
    found = of_unit[number].astype(np.uint8)
    found[is_in_probed & (found == Lack.SOURCE)] = Lack.PLACE
    return found


def unprobed_functions(addresses: PlacedAddresses, count: U64, debug: DebugInfo) -> Iterator[str]:
    """The functions around these addresses (n,), which lack probes, in a sentence.

    Those of the highest counts are named, with the files that they were compiled from.
    """
    functions = debug.functions_for(addresses)
    place = functions.containing(addresses)
    known = np.flatnonzero(place >= 0)
    function, first, number = np.unique(
        functions.function[place[known]], return_index=True, return_inverse=True
    )
    if not len(function):
        return
    total = sums_at(number, count[known], len(function))
    hottest = np.argsort(total, kind="stable")[::-1][:_NAMED]
    files = debug.unit_names(addresses[known[first[hottest]]])
    names = (
        f"{short_name(without_unique_suffix(functions.names[number]))} ({file})"
        for number, file in zip(function[hottest].tolist(), files, strict=True)
    )
    yield (
        f"{counted(len(function), 'function')} of files compiled without pseudo probes ran, "
        f"hottest first: {', '.join(names)}"
    )
