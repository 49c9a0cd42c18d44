"""What was recorded of a start-up that a function ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.recorders.options import DEFAULT_STARTUP, RecordOptions
from lbr2pgo.recorders.plugin_stream import Stream


def of_start(streams: Sequence[Stream]) -> tuple[Sequence[Stream], bool]:
    """The streams of all processes until the first one has started, and whether one has."""
    ended = [stream.started for stream in streams if stream.started is not None]
    if not ended:
        return streams, False
    return [_until(stream, min(ended)) for stream in streams], True


def _until(stream: Stream, time: int) -> Stream:
    samples, misses, accesses = (
        at[stream.times(at) <= np.uint64(time)]
        for at in (stream.samples_at, stream.misses_at, stream.accesses_at)
    )
    return replace(stream, samples_at=samples, misses_at=misses, accesses_at=accesses)


def never_started(options: RecordOptions) -> Iterator[str]:
    """That no function ended the start-up, where one was to."""
    if options.until is not None:
        yield (
            f"{options.until.function} was never entered: the start-up is all that ran, "
            f"{options.duration or DEFAULT_STARTUP:g} seconds at most. Take a function that runs, "
            "or give it more time with --startup SECONDS."
        )
