"""When functions were first sampled, for `gcc -fprofile-reorder-functions`."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.gcc.samples import gcc_name
from lbr2pgo.profiles.llvm.counted_code import starts
from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.profiles.llvm.symbol_names import by_symbol
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.replay.first_times import first_times
from lbr2pgo.replay.recordings import Replayed


def first_seen(found: Replayed, debug: DebugInfo) -> dict[Name, int]:
    """When a branch of each function was first in a sample, by the name that GCC knows.

    Inputs that hold counts have no times, and text without them has none that mean anything.
    """
    times = first_times(found)
    functions = by_symbol(debug.functions_for(starts(found.flow)), found.program.functions)
    place = functions.containing(times.address)
    seen: dict[Name, int] = {}
    rows = np.flatnonzero(place >= 0)
    numbers = functions.function[place[rows]].tolist()
    for function, time in zip(numbers, times.time[rows].tolist(), strict=True):
        name = gcc_name(functions.names[function])
        seen[name] = min(seen.get(name, time), time)
    return seen
