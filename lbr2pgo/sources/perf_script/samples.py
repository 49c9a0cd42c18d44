"""The samples of `perf script` text, chunk by chunk, in several threads.

A chunk may end in the middle of a sample that stands on several lines. Where samples have call
stacks most do, and are read one after the other. Elsewhere hardly any does, so each is read as if
no sample were open before it, and once more where one was.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.perf_script.symbols import Symbols
from lbr2pgo.support.arrays import I64, U64, Text
from lbr2pgo.support.threads import in_order, threads

if TYPE_CHECKING:
    from lbr2pgo.native.brstack_lines import Scratch

_SAMPLES_AT_ONCE = 1 << 15
_LAST_TIME_UNKNOWN = np.uint64(0xFFFFFFFFFFFFFFFF)
"""No time that perf prints."""


@dataclass(frozen=True, slots=True)
class Format:
    """What a whole file's lines have in common, and how much of it is read at once."""

    facts: I64
    """(FACTS,), from `native.brstack_lines.survey`."""
    hashes: U64
    """(k,): of the names of the events."""
    chunk_size: int
    has_symbols: bool
    """Stacks hold symbols and no addresses."""


class Part(NamedTuple):
    """The samples that end in a chunk."""

    batches: list[BranchStacks]
    losses: U64
    """(LOSSES,), see `native.brstack_text`."""
    state: U64
    """(STATE_SIZE,): the sample that is open at the chunk's end."""
    text: Text
    base: int


Parts = Generator[Part, None, None]
Chunks = Iterable[tuple[Text, int]]
"""Whole lines, and where they stand in the file; good until the next ones are asked for."""


def read_parts(chunks: Chunks, form: Format, symbols: Symbols | None) -> Parts:
    """The samples of a file, in its order; `symbols` are needed where stacks hold some."""
    from lbr2pgo.native.brstack_lines import HYBRID

    ends = _with_end(chunks)
    if symbols is not None or form.facts[HYBRID] or threads() == 1:
        return _read_one_by_one(ends, _Reader(form, symbols))
    return _read_ahead(ends, form)


def _with_end(chunks: Chunks) -> Chunks:
    """The chunks, and a blank line, which ends the sample that the file's end left open."""
    end = 0
    for text, base in chunks:
        yield text, base
        end = base + len(text)
    yield np.array([ord("\n")], dtype=np.uint8), end


def _read_one_by_one(chunks: Chunks, reader: _Reader) -> Parts:
    state = _nothing_open(0)
    for text, base in chunks:
        part = reader.read(text, base, state)
        state = part.state
        yield part


def _read_ahead(chunks: Chunks, form: Format) -> Parts:
    from lbr2pgo.native.brstack_text import LAST_TIME

    again, state = _Reader(form), _nothing_open(0)
    readers = [_Reader(form).read_first for _ in range(threads())]
    for part in in_order(((text.copy(), base) for text, base in chunks), readers):
        if _is_open(state):
            found = again.read(part.text, part.base, state)
        else:
            found = _with_last_time(part, state[LAST_TIME])
        state = found.state
        yield found


def _nothing_open(last_time: int | np.uint64) -> U64:
    from lbr2pgo.native.brstack_text import LAST_TIME, STATE_SIZE

    state = np.zeros(STATE_SIZE, dtype=np.uint64)
    state[LAST_TIME] = last_time
    return state


def _is_open(state: U64) -> bool:
    """Whether the next line may be part of a sample that has begun."""
    from lbr2pgo.native.brstack_text import IS_OPEN, WEIGHT

    return bool(state[IS_OPEN] or state[WEIGHT])


def _with_last_time(part: Part, last_time: np.uint64) -> Part:
    """The same, now that the time of the sample before is known."""
    from lbr2pgo.native.brstack_text import LAST_TIME

    for batch in part.batches:
        batch.time[batch.time == _LAST_TIME_UNKNOWN] = last_time
    if part.state[LAST_TIME] == _LAST_TIME_UNKNOWN:
        part.state[LAST_TIME] = last_time
    return part


class _Reader:
    """Reads chunks, in arrays of its own."""

    def __init__(self, form: Format, symbols: Symbols | None = None) -> None:
        from lbr2pgo.native import brstack_text as kernel
        from lbr2pgo.native.brstack_lines import FEWEST_BYTES

        entries = form.chunk_size // FEWEST_BYTES + 2
        names = entries if form.has_symbols else 0
        self._symbols = symbols
        self._tables = kernel.Tables(
            facts=form.facts,
            hashes=form.hashes,
            state=np.zeros(kernel.STATE_SIZE, dtype=np.uint64),
            samples=np.zeros((_SAMPLES_AT_ONCE, kernel.SAMPLE_SIZE), dtype=np.uint64),
            ends=np.zeros(_SAMPLES_AT_ONCE, dtype=np.int64),
            entries=np.zeros((entries, 3), dtype=np.uint64),
            names=np.zeros((names, kernel.NAME_COLUMNS), dtype=np.int64),
            offsets=np.zeros((names, 2), dtype=np.uint64),
            used=np.zeros(2, dtype=np.int64),
            losses=np.zeros(kernel.LOSSES, dtype=np.uint64),
            scratch=new_scratch(),
        )

    def read_first(self, text: Text, base: int) -> Part:
        """Read a chunk as if no sample were open before it; times before its first are unknown."""
        return self.read(text, base, _nothing_open(_LAST_TIME_UNKNOWN))

    def read(self, text: Text, base: int, state: U64) -> Part:
        """Read a chunk that follows on a state."""
        from lbr2pgo.native.brstack_text import read_samples

        tables, batches, place = self._tables, [], 0
        tables.state[:] = state
        tables.losses[:] = 0
        while place < len(text):
            place = read_samples(text, place, len(text), base, tables)
            if tables.used[0]:
                batches.append(self._batch(text))
        return Part(batches, tables.losses.copy(), tables.state.copy(), text, base)

    def _batch(self, text: Text) -> BranchStacks:
        """Copy what the tables hold."""
        tables = self._tables
        n, m = tables.used.tolist()
        entries = tables.entries[:m].copy()
        if self._symbols is not None and m:
            places = tables.names[:m], text
            entries[:, :2] = self._symbols.addresses(entries[:, :2], tables.offsets[:m], *places)
        offsets = np.zeros(n + 1, dtype=np.int64)
        offsets[1:] = tables.ends[:n]
        pid, tid, time, event, ip, weight = tables.samples[:n].T
        return BranchStacks(
            entries=entries,
            offsets=offsets,
            pid=pid.astype(np.int32),
            tid=tid.astype(np.int32),
            time=time.copy(),
            event=event.astype(np.int32),
            ip=ip.copy(),
            weight=weight.copy(),
        )


def new_scratch() -> Scratch:
    """Room for the loops to work in."""
    from lbr2pgo.native import brstack_lines, brstack_prefix

    return brstack_lines.Scratch(
        words=np.zeros((brstack_prefix.MOST_WORDS, 2), dtype=np.int64),
        prefix=np.zeros(brstack_prefix.PREFIX_SIZE, dtype=np.uint64),
        entry=np.zeros(3, dtype=np.uint64),
    )
