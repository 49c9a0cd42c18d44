"""When functions were first sampled, for `gcc -fprofile-reorder-functions`."""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.first_times import FirstTimes
from lbr2pgo.profiles.afdo.afdo import FIRST_WITH_TIMES
from lbr2pgo.profiles.afdo.gcc_names import gcc_name
from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.program.dwarf.function import DwarfFunctions


def first_seen(times: FirstTimes, functions: DwarfFunctions) -> dict[Name, int]:
    """When a branch from or to each function was first in a sample, by the name that GCC knows.

    Text without times has none that mean anything.
    """
    place = functions.containing(times.address)
    seen: dict[Name, int] = {}
    rows = np.flatnonzero(place >= 0)
    numbers = functions.function[place[rows]].tolist()
    for function, time in zip(numbers, times.time[rows].tolist(), strict=True):
        name = gcc_name(functions.names[function], FIRST_WITH_TIMES)
        seen[name] = min(seen.get(name, time), time)
    return seen
