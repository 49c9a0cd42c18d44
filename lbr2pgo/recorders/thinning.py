"""Samples of periods that grew during a run, thinned as if the longest had held all the time.

Each thread begins with a short period, which doubles whenever there are too many samples
(plugin/ring.c): then neither short nor long runs give too few or too many, and of those that were
taken with a shorter period each second, fourth and so on is as good as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.recorders.plugin_stream import Stream
from lbr2pgo.support.arrays import I64, Bools


def longest_period(streams: Sequence[Stream], first: int) -> int:
    """The longest of some streams whose threads began with the first one."""
    return max([first, *(each.period for stream in streams for each in stream.periods)])


def thinned(stream: Stream, first: int, longest: int) -> Stream:
    """The stream with those samples that the longest period would have given."""
    tid = stream.threads(stream.samples_at).astype(np.int64)
    period = np.full(len(tid), first)
    for change in stream.periods:
        period[change.before :][tid[change.before :] == change.tid] = change.period
    return replace(stream, samples_at=stream.samples_at[_chosen(tid, period, longest)])


def _chosen(tid: I64, period: I64, longest: int) -> Bools:
    """(n,): every (longest / period)-th of each thread's samples of each period.

    >>> _chosen(np.array([1, 1, 2, 1, 1]), np.array([5, 5, 10, 5, 10]), 10)
    array([False,  True,  True, False,  True])
    """
    order = np.lexsort((period, tid))
    starts = np.flatnonzero(np.diff(tid[order], prepend=-1) | np.diff(period[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    step = longest // period
    chosen: Bools = rank % step == step // 2
    return chosen
