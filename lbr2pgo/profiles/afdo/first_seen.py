"""When functions were first sampled, for `gcc -fprofile-reorder-functions`."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.afdo.afdo import FIRST_WITH_TIMES
from lbr2pgo.profiles.afdo.gcc_names import gcc_name
from lbr2pgo.profiles.llvm.sample_names import Name
from lbr2pgo.program.dwarf.function import DwarfFunctions
from lbr2pgo.replay.first_times import first_times
from lbr2pgo.replay.recordings import Replayed


def first_seen(found: Replayed, functions: DwarfFunctions) -> dict[Name, int]:
    """When a branch from or to each function was first in a sample, by the name that GCC knows.

    Inputs that hold counts have no times, and text without them has none that mean anything.
    """
    times = first_times(found)
    place = functions.containing(times.address)
    seen: dict[Name, int] = {}
    rows = np.flatnonzero(place >= 0)
    numbers = functions.function[place[rows]].tolist()
    for function, time in zip(numbers, times.time[rows].tolist(), strict=True):
        name = gcc_name(functions.names[function], FIRST_WITH_TIMES)
        seen[name] = min(seen.get(name, time), time)
    return seen
