"""The samples of `perf script` text, piece by piece, in several threads.

A piece may end in the middle of a sample that stands on several lines. Where samples have call
stacks most do, and are read one after the other. Elsewhere hardly any does, so each is read as if
no sample were open before it, and once more where one was.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from functools import partial

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.sources.base import SymbolResolver
from lbr2pgo.sources.perf_script._brstack_samples import (
    OpenSample,
    ReadSamples,
    SampleReader,
    Survey,
)
from lbr2pgo.sources.text_lines import LineBuffer, Pieces
from lbr2pgo.support import headway
from lbr2pgo.support.arrays import I64, U64, Records
from lbr2pgo.support.threads import in_order, threads

_TIME_UNKNOWN = 2**64 - 1
"""No time that perf prints."""


def survey(pieces: Pieces) -> Survey:
    """What no single line of a file tells."""
    found, buffer, seen = Survey(), pieces.buffer(), 0
    # What entries look like, their first one tells; the rest need not be read in turn.
    while not found.has_seen_entries and seen < len(pieces.starts):
        found.add(*buffer.read(pieces.starts[seen]))
        seen += 1
    workers = [partial(_survey_piece, found, pieces.buffer()) for _ in range(threads())]
    with closing(in_order(((start,) for start in pieces.starts[seen:]), workers)) as parts:
        for number, part in enumerate(parts, seen + 1):
            found.merge(part)
            headway.tell(number / len(pieces.starts))
    return found


def _survey_piece(before: Survey, buffer: LineBuffer, start: int) -> Survey:
    part = before.part()
    part.add(*buffer.read(start))
    return part


def read_samples(
    pieces: Pieces, survey: Survey, symbols: SymbolAddresses | None
) -> Generator[tuple[BranchStacks, dict[str, int]], None, None]:
    """The samples of a file, in its order; `symbols` are needed where stacks hold some."""
    is_in_turn = survey.is_hybrid or threads() == 1
    read = _read_in_turn if is_in_turn else _read_ahead
    for found in read(pieces, survey):
        yield _batch(found, symbols, survey), found.losses


def _read_in_turn(pieces: Pieces, survey: Survey) -> Generator[ReadSamples, None, None]:
    reader, before = _Reader(pieces, survey), OpenSample()
    for start in pieces.starts:
        found = reader.read(start, before)
        before = found.after
        yield found
    yield reader.finish(before)


def _read_ahead(pieces: Pieces, survey: Survey) -> Generator[ReadSamples, None, None]:
    again, before = _Reader(pieces, survey), OpenSample()
    workers = [_Reader(pieces, survey).guess for _ in range(threads())]
    with closing(in_order(((start,) for start in pieces.starts), workers)) as guesses:
        for start, found in guesses:
            if before.is_open:
                found = again.read(start, before)
            else:
                _set_last_time(found, before)
            before = found.after
            yield found
    yield again.finish(before)


class _Reader:
    """Reads pieces of a file, in one thread."""

    def __init__(self, pieces: Pieces, survey: Survey) -> None:
        self._buffer = pieces.buffer()
        self._reader = SampleReader(survey)
        self._size = pieces.size

    def read(self, start: int, before: OpenSample) -> ReadSamples:
        return self._reader.read(*self._buffer.read(start), before)

    def guess(self, start: int) -> tuple[int, ReadSamples]:
        """Read a piece as if no sample were open before it; times before its first are unknown."""
        return start, self.read(start, OpenSample(_TIME_UNKNOWN))

    def finish(self, before: OpenSample) -> ReadSamples:
        """Read a blank line, which ends the sample that the file's end left open."""
        return self._reader.read(b"\n", self._size, before)


def _set_last_time(found: ReadSamples, before: OpenSample) -> None:
    """Fill in what was guessed, now that the time of the sample before is known."""
    time = found.samples["time"]
    time[time == _TIME_UNKNOWN] = before.last_time
    if found.after.last_time == _TIME_UNKNOWN:
        found.after.last_time = before.last_time


def _batch(found: ReadSamples, symbols: SymbolAddresses | None, survey: Survey) -> BranchStacks:
    samples, entries = found.samples, found.entries
    chains = CallChains(found.frames, _offsets(samples["frame_end"])) if survey.is_hybrid else None
    if symbols is not None:
        chains = None  # they hold addresses of the process, and stacks those of the image
        entries[:, :2] = symbols.addresses(entries[:, :2], found.offsets, found.names)
    return BranchStacks(
        entries=entries,
        offsets=_offsets(samples["end"]),
        pid=samples["pid"].copy(),
        tid=samples["tid"].copy(),
        time=samples["time"].copy(),
        event=samples["event"].astype(np.int32),
        ip=samples["ip"].copy(),
        weight=samples["weight"].copy(),
        cpu=samples["cpu"].copy() if (samples["cpu"] >= 0).any() else None,
        chains=chains,
        accesses=_accesses(samples) if survey.has_accesses else None,
    )


def _accesses(samples: Records) -> U64:
    return np.column_stack([samples["address"], samples["data_source"]])


def _offsets(ends: I64) -> I64:
    return np.concatenate([np.zeros(1, np.int64), ends])


class SymbolAddresses:
    """Resolves each symbol of brstacksym entries once, and counts those that the binary lacks."""

    def __init__(self, resolve: SymbolResolver) -> None:
        self._resolve = resolve
        self._known: dict[int, int | None] = {}
        self.lost = 0
        """Addresses that could not be told; they are 0, which breaks the chain there."""

    def addresses(self, hashes: U64, offsets: U64, names: Mapping[int, bytes]) -> U64:
        """Addresses (m, 2) of symbols with these hashes, whose names are told by them."""
        unique, inverse = np.unique(hashes.ravel(), return_inverse=True)
        found = [self._address(name_hash, names[name_hash]) for name_hash in unique.tolist()]
        bases = np.array([0 if base is None else base for base in found], dtype=np.uint64)
        is_known = np.array([base is not None for base in found], dtype=np.bool_)
        inverse = inverse.reshape(hashes.shape)
        self.lost += int(np.count_nonzero(~is_known[inverse]))
        return np.where(is_known[inverse], bases[inverse] + offsets, np.uint64(0))

    def _address(self, name_hash: int, name: bytes) -> int | None:
        if name_hash not in self._known:
            symbol = name.decode("utf-8", "surrogateescape")
            self._known[name_hash] = self._resolve(symbol) if symbol else None
        return self._known[name_hash]
