"""Which functions each process ran, in the order in which it first did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.profiles.linker.balanced_partitioning import by_traces
from lbr2pgo.profiles.linker.function_order import owners
from lbr2pgo.profiles.linker.symbol_order import NamedFlow, named_flow
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.tables import table

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding

_MOST_STARTS = 100
"""As many as LLVM keeps (-temporal-profile-trace-reservoir-size)."""
ASKED: tuple[Finding[Any], ...] = (FIRST_TIMES,)


@table
class FirstRuns:
    """Functions that processes ran; (n,) each, those of one process together, in their order."""

    process: I64
    recording: I64
    """That the process is in."""
    function: I64
    """By its place in a `NamedFlow`."""
    since: U64
    """Nanoseconds since the process was first sampled."""
    recordings: int
    """How many there are."""

    def of_each_process(self) -> Sequence[I64]:
        """The functions (k,) of each process, in their order."""
        return self._processes(self.function)

    def _processes(self, column: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        return np.split(column, np.flatnonzero(np.diff(self.process)) + 1)

    def weights(self, of: Sequence[int]) -> list[int]:
        """Of each process, by the weights of recordings: 1 each, where none are given.

        Raises OutputError where these are not as many as recordings.
        """
        if of and len(of) != self.recordings:
            many = counted(self.recordings, "recording")
            raise OutputError(
                f"{counted(len(of), 'weight')} can't be those of {many}",
                cure="Give one for each, in their order: 3,1.",
            )
        by = np.array(of or [1] * self.recordings)
        found: list[int] = by[[each[0] for each in self._processes(self.recording)]].tolist()
        return found

    def starts(self, within: int, of: Sequence[int] = ()) -> Starts:
        """The different ones, by what ran within so many nanoseconds."""
        early = self.since <= np.uint64(within)
        ways: Counter[bytes] = Counter()
        columns = self._processes(self.function), self._processes(early), self.weights(of)
        for process, is_early, weight in zip(*columns, strict=True):
            ways[process[is_early].tobytes()] += weight
        chosen = ways.most_common(_MOST_STARTS)
        traces = tuple(np.frombuffer(way, np.int64) for way, _ in chosen)
        return Starts(traces, tuple(weight for _, weight in chosen), len(ways) - len(chosen))

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


@dataclass(frozen=True, slots=True)
class Starts:
    """Ways in which processes start, each as functions (k,) in their order."""

    traces: tuple[I64, ...]
    weights: tuple[int, ...]
    """Of the processes that started so, added up."""
    left_out: int = 0
    """Lighter ways, where there are very many."""

    def together(self, rank: I64) -> I64:
        """Another rank (n,), by which functions that the same starts need stand together.

        Those of no trace keep theirs. One start alone is in the best order.
        """
        if len(self.traces) < 2:
            return rank
        early = distinct(np.concatenate(self.traces))
        early = early[np.argsort(rank[early], kind="stable")]
        place = np.full(len(rank), -1)
        place[early] = np.arange(len(early))
        order = by_traces(len(early), [place[trace] for trace in self.traces], self.weights)
        found = rank.copy()
        found[early[order]] = np.arange(len(early))
        return found


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
    recording = times.recording[order]
    _, first = np.unique(np.stack([process, function], axis=1), axis=0, return_index=True)
    first.sort()
    process, recording, time = process[first], recording[first], time[first]
    begun = time[np.searchsorted(process, process)]
    return FirstRuns(process, recording, function[first], time - begun, times.recordings)


def named_in_order(found: NamedFlow, order: I64) -> list[str]:
    """All names of functions in an order."""
    return [name for i in order.tolist() for name in found.names[i]]
