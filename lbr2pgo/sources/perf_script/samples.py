"""The samples of `perf script` text, chunk by chunk, in several threads.

A chunk may end in the middle of a sample that stands on several lines. Where samples have call
stacks most do, and are read one after the other. Elsewhere hardly any does, so each is read as if
no sample were open before it, and once more where one was.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.native.brstack_samples import (
    OpenSample,
    ReadSamples,
    SampleReader,
    Survey,
)
from lbr2pgo.sources.perf_script.symbols import Symbols
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.threads import in_order, threads

_TIME_UNKNOWN = 2**64 - 1
"""No time that perf prints."""

Chunks = Iterable[tuple[bytes, int]]
"""Whole lines, and where they stand in the file."""


def read_samples(
    chunks: Chunks, survey: Survey, symbols: Symbols | None
) -> Generator[tuple[BranchStacks, dict[str, int]], None, None]:
    """The samples of a file, in its order; `symbols` are needed where stacks hold some."""
    is_in_turn = survey.is_hybrid or threads() == 1
    read = _read_in_turn if is_in_turn else _read_ahead
    for text, found in read(_with_end(chunks), survey):
        yield _batch(found, text, symbols, is_hybrid=survey.is_hybrid), found.losses


def _with_end(chunks: Chunks) -> Chunks:
    """The chunks, and a blank line, which ends the sample that the file's end left open."""
    end = 0
    for text, base in chunks:
        yield text, base
        end = base + len(text)
    yield b"\n", end


def _read_in_turn(chunks: Chunks, survey: Survey) -> Generator[tuple[bytes, ReadSamples]]:
    reader, before = SampleReader(survey), OpenSample()
    for text, base in chunks:
        found = reader.read(text, base, before)
        before = found.after
        yield text, found


def _read_ahead(chunks: Chunks, survey: Survey) -> Generator[tuple[bytes, ReadSamples]]:
    again, before = SampleReader(survey), OpenSample()
    readers = [_Guess(survey).read for _ in range(threads())]
    for text, base, found in in_order(chunks, readers):
        if before.is_open:
            found = again.read(text, base, before)
        else:
            _set_last_time(found, before)
        before = found.after
        yield text, found


class _Guess:
    """Reads chunks as if no sample were open before each; times before its first are unknown."""

    def __init__(self, survey: Survey) -> None:
        self._reader = SampleReader(survey)
        self._before = OpenSample(_TIME_UNKNOWN)

    def read(self, text: bytes, base: int) -> tuple[bytes, int, ReadSamples]:
        return text, base, self._reader.read(text, base, self._before)


def _set_last_time(found: ReadSamples, before: OpenSample) -> None:
    """Fill in what was guessed, now that the time of the sample before is known."""
    time = found.samples["time"]
    time[time == _TIME_UNKNOWN] = before.last_time
    if found.after.last_time == _TIME_UNKNOWN:
        found.after.last_time = before.last_time


def _batch(
    found: ReadSamples, text: bytes, symbols: Symbols | None, *, is_hybrid: bool
) -> BranchStacks:
    samples, entries = found.samples, found.entries
    chains = CallChains(found.frames, _offsets(samples["frame_end"])) if is_hybrid else None
    if symbols is not None:
        chains = None  # they hold addresses of the process, and stacks those of the image
        entries[:, :2] = symbols.addresses(entries[:, :2], found.offsets, found.names, text)
    return BranchStacks(
        entries=entries,
        offsets=_offsets(samples["end"]),
        pid=samples["pid"].copy(),
        tid=samples["tid"].copy(),
        time=samples["time"].copy(),
        event=samples["event"].astype(np.int32),
        ip=samples["ip"].copy(),
        weight=samples["weight"].copy(),
        chains=chains,
    )


def _offsets(ends: I64) -> I64:
    return np.concatenate([np.zeros(1, np.int64), ends])
