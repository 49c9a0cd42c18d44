"""Which samples are wanted: of some processes, threads, names, processors, and spans of time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from lbr2pgo.model.address_space_events import Comm, Fork, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import SourceInfo, StackSource
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_DEEPEST = 1 << 16
"""No stack has more entries: a record of perf has fewer bytes."""


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """What perf's options of these names choose; all samples where nothing is said."""

    pids: tuple[int, ...] = ()
    tids: tuple[int, ...] = ()
    comms: tuple[str, ...] = ()
    """Names that threads had when they were sampled."""
    cpus: tuple[int, ...] = ()
    time: tuple[int, int | None] | None = None
    """From which nanosecond to which, both included (perf: tools/perf/util/time-utils.c,
    perf_time__skip_sample); None: to the end."""
    phase: int | None = None
    """Only of this phase of these samples, from 1 on; `replay.chosen_phase` makes it a time."""


@dataclass(frozen=True, slots=True)
class CountingOptions:
    """Which samples to count."""

    event: str | None = None
    """Only samples of the event with this name."""
    choice: SampleChoice = SampleChoice()
    """Only these samples."""
    build_id: str | None = None
    """Build-id under which the recording knows the binary, if not the binary's own."""
    drop_newest: int = 0
    """So many of each stack's newest entries are left out."""
    drop_oldest: int = 0
    corrects_bias: bool = False
    """Where a recorder prefers some branches for the ends of its stacks, these ends are left out,
    and where it prefers some moments, stacks are weighed (`bias`): then they are counted anew."""

    def __post_init__(self) -> None:
        for dropped in (self.drop_newest, self.drop_oldest):
            if not 0 <= dropped <= _DEEPEST:
                raise InputError(
                    f"{dropped} entries of each stack can't be left out",
                    cure=f"Leave out 0 to {_DEEPEST:,}.",
                )


class Chooser:
    """Applies a choice to the batches of one source."""

    def __init__(self, choice: SampleChoice, source: StackSource) -> None:
        self._choice, self._source = choice, source
        self._names = _names(source.space_events()) if choice.comms else {}

    def of_processes(self, batch: BranchStacks) -> Bools:
        """(n,): which samples are of the processes."""
        pids = self._choice.pids
        return np.isin(batch.pid, pids) if pids else np.ones(len(batch), np.bool_)

    def of_the_rest(self, batch: BranchStacks) -> Bools:
        """(n,): which samples the other options choose; InputError where none can be told."""
        choice, chosen = self._choice, np.ones(len(batch), np.bool_)
        if choice.tids:
            chosen &= np.isin(batch.tid, choice.tids)
        if choice.cpus:
            chosen &= np.isin(self._cpus(batch), choice.cpus)
        if choice.time is not None:
            refuse_untimed(self._source.info)
            start, end = choice.time
            chosen &= batch.time >= np.uint64(start)
            if end is not None:
                chosen &= batch.time <= np.uint64(end)
        if choice.comms:
            chosen &= self._is_named(batch)
        return chosen

    def _cpus(self, batch: BranchStacks) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        if batch.cpu is None:
            raise InputError(
                "does not say on which processors its samples were taken",
                where=self._source.info.path,
                cure="Record it with perf record --sample-cpu, or print it: perf script -F +cpu.",
            )
        return batch.cpu

    def _is_named(self, batch: BranchStacks) -> Bools:
        if not self._names:
            raise InputError(
                "does not say what its threads were called",
                where=self._source.info.path,
                cure="Choose by --tid or --pid; perf script prints names with --show-task-events.",
            )
        wanted = set(self._choice.comms)
        pairs = zip(batch.tid.tolist(), batch.time.tolist(), strict=True)
        return np.array([self._name(*pair) in wanted for pair in pairs], np.bool_)

    def _name(self, tid: int, time: int) -> str | None:
        times, names = self._names.get(tid, ([], []))
        row = bisect_right(times, time)
        return names[row - 1] if row else None


def refuse_untimed(info: SourceInfo) -> None:
    """Raise InputError for a recording that does not tell when."""
    if not info.has_times:
        raise InputError(
            "does not say when its samples were taken",
            where=info.path,
            cure="Record it with perf record --timestamp, or print it: perf script -F +time.",
        )


_Names = dict[int, tuple[list[int], list[str]]]


def _names(events: Sequence[SpaceEvent]) -> _Names:
    """By thread, from when on it had which names; a new one has that of its parent."""
    found: _Names = defaultdict(lambda: ([], []))
    for event in events:
        if isinstance(event, Comm):
            name = event.name
        elif isinstance(event, Fork) and event.parent_pid in found:
            name = found[event.parent_pid][1][-1]
        else:
            continue
        times, names = found[event.tid]
        times.append(event.time)
        names.append(name)
    return dict(found)
