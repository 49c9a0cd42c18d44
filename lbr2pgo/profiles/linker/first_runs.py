"""Which functions each process ran, in the order in which it first did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.profiles.linker.function_order import owners
from lbr2pgo.profiles.linker.symbol_order import NamedFlow, named_flow
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.tables import table

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding

ASKED: tuple[Finding[Any], ...] = (FIRST_TIMES,)


@table
class FirstRuns:
    """Functions that processes ran; (n,) each, those of one process together, in their order."""

    process: I64
    function: I64
    """By its place in a `NamedFlow`."""
    since: U64
    """Nanoseconds since the process was first sampled."""

    def of_each_process(self) -> Sequence[I64]:
        """The functions (k,) of each process, in their order."""
        return np.split(self.function, np.flatnonzero(np.diff(self.process)) + 1)

    def earliest(self, functions: int) -> tuple[I64, U64]:
        """(functions,) each: how many functions a process ran before it, and the time until then.

        The least over all processes; the largest numbers that there are for what none ran.
        """
        starts = np.searchsorted(self.process, self.process)
        rank = np.full(functions, np.iinfo(np.int64).max)
        np.minimum.at(rank, self.function, np.arange(len(self.process)) - starts)
        since = np.full(functions, np.iinfo(np.uint64).max)
        np.minimum.at(since, self.function, self.since)
        return rank, since


def first_runs(work: Work) -> FirstRuns:
    """The first runs of `named_flow`'s functions: to be had by `Work.once`.

    Raises OutputError where the inputs hold no samples, or these no times.
    """
    times = work.told(FIRST_TIMES)
    if times is None or not times.time.any():
        raise OutputError(
            "no order of first runs was written: the recording does not say when its samples were "
            "taken",
            cure="Record it: lbr2pgo record --startup -- CMD.",
        )
    functions, ran = work.program.functions, work.once(named_flow).flow.function
    owner = owners(functions.containing(times.address), functions)
    place = np.minimum(np.searchsorted(ran, owner), len(ran) - 1)
    rows = np.flatnonzero(ran[place] == owner)
    order = rows[np.lexsort((times.step[rows], times.time[rows], times.process[rows]))]
    process, function, time = times.process[order], place[order], times.time[order]
    _, first = np.unique(np.stack([process, function], axis=1), axis=0, return_index=True)
    first.sort()
    process, time = process[first], time[first]
    begun = time[np.searchsorted(process, process)]
    return FirstRuns(process, function[first], time - begun)


def named_in_order(found: NamedFlow, order: I64) -> list[str]:
    """All names of functions in an order."""
    return [name for i in order.tolist() for name in found.names[i]]
