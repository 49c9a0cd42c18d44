"""Where one image was mapped, in which process, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lbr2pgo.counting._translation import translate
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.counting.mapping_history import NONE, MappingHistory
from lbr2pgo.model.address_space_events import ANY_PID, Mmap, SpaceEvent
from lbr2pgo.model.space_event_log import MMAP, as_log
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.addresses import (
    LAST_ADDRESS,
    SLOT_SIZE,
    PlacedAddress,
    PlacedAddresses,
    RuntimeAddress,
    RuntimeAddresses,
    placed_addresses,
    slot_of,
)
from lbr2pgo.support.arrays import I32, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, distinct

_MOST_MAPPINGS = 64
"""Nobody records that a library was closed, so what a process mapped only ever grows; of an image
that one process mapped more often than this, the first mappings are forgotten."""
_MOST_EVERYWHERE = 1 << 16
"""The same where samples don't say their process."""


class Piece(NamedTuple):
    """Run-time addresses `[start, end)` are placed addresses plus `bias`."""

    start: RuntimeAddress
    end: RuntimeAddress
    bias: int

    @property
    def slot(self) -> int:
        """Of the image that it shows."""
        return slot_of(PlacedAddress(self.start - self.bias))


Pieces = tuple[Piece, ...]


def pieces_of(event: Mmap, layout: ImageLayout) -> Pieces:
    """What one mapping of the image's file shows of its executable segments.

    The mapping may start in the page before the segment and may span several segments.
    """
    if event.is_as_linked:
        return loaded(layout, 0)
    pieces = []
    for segment in layout.segments:
        if not segment.executable:
            continue
        low = max(event.file_offset, segment.file_offset)
        high = min(event.file_offset + event.length, segment.file_offset + segment.file_size)
        start = RuntimeAddress(event.start + (low - event.file_offset))
        # Damaged records would go on behind the last address.
        end = RuntimeAddress(min(start + (high - low), LAST_ADDRESS))
        if start < end:
            bias = start - (segment.address + low - segment.file_offset)
            pieces.append(Piece(start, end, bias))
    return tuple(pieces)


def moved(pieces: Pieces, slot: int) -> Pieces:
    """The same in a slot of their own, see `support.addresses.SLOT_BITS`."""
    return tuple(piece._replace(bias=piece.bias - slot * SLOT_SIZE) for piece in pieces)


def without(pieces: Pieces, start: RuntimeAddress, end: RuntimeAddress) -> Pieces:
    """What is left of the pieces after something else was mapped at `[start, end)`."""
    left = []
    for piece in pieces:
        low, high, bias = piece
        if high <= start or end <= low:
            left.append(piece)
            continue
        if low < start:
            left.append(Piece(low, start, bias))
        if end < high:
            left.append(Piece(end, high, bias))
    return tuple(left)


def joined(pieces: Pieces) -> Pieces:
    """Sorted by address, with neighbours that continue each other made one."""
    ordered, found = sorted(pieces), list[Piece]()
    if len({piece.bias for piece in pieces}) == len(pieces):
        return tuple(ordered)  # none continues another, as where many files are mapped
    for piece in ordered:
        if found and found[-1].bias == piece.bias and found[-1].end == piece.start:
            found[-1] = Piece(found[-1].start, piece.end, piece.bias)
        else:
            found.append(piece)
    return tuple(found)


def overlaid(pieces: Sequence[Piece]) -> Pieces:
    """What is seen of pieces that were laid over one another, the last one on top."""
    edges = sorted({edge for piece in pieces for edge in (piece.start, piece.end)})
    upcoming = sorted(range(len(pieces)), key=lambda i: pieces[i].start, reverse=True)
    seen: list[Piece] = []
    here: list[int] = []
    for low, high in pairwise(edges):
        while upcoming and pieces[upcoming[-1]].start <= low:
            heappush(here, -upcoming.pop())
        while here and pieces[-here[0]].end <= low:
            heappop(here)
        if here:
            seen.append(Piece(low, high, pieces[-here[0]].bias))
    return joined(tuple(seen))


def loaded(layout: ImageLayout, bias: int) -> Pieces:
    """The image at the addresses that it was linked for, plus `bias`."""
    return tuple(
        Piece(RuntimeAddress(s.address + bias), RuntimeAddress(s.end + bias), bias)
        for s in layout.segments
        if s.executable
    )


@dataclass(frozen=True, slots=True)
class Others:
    """Images beside the one that is looked for, each moved to a slot of its own."""

    pieces: Callable[[Mmap], Pieces] = lambda _: ()
    """What a mapping shows of them."""
    paths: tuple[str, ...] = ()
    """Under which they were mapped."""
    enough: frozenset[int] = frozenset()
    """Slots of those without which, or the image itself, a process is another program."""
    count: int = 0
    layouts: tuple[ImageLayout, ...] = ()


class AddressSpaces:
    """Finds, for a sample's pid and time, which view of the image its process had.

    Equal views are one *space*, whatever the process, so a space is a small number and the
    samples of a thousand forks are counted together. Spaces are numbered as samples ask for them,
    and their numbers index `bounds` and `pieces`.
    """

    def __init__(
        self,
        events: Sequence[SpaceEvent],
        layout: ImageLayout,
        match: ImageMatch,
        others: Others | None = None,
    ) -> None:
        """Of these events; `match` tells mappings of the image's code."""
        self._others = others or Others()
        self._layout = layout
        self._match = match
        self.pieces: list[Pieces] = []
        self._bounds = np.zeros((0, 2), np.uint64)
        self._offsets, self._pieces = np.zeros(1, np.int64), np.zeros((0, 3), np.uint64)
        self._numbers: dict[Pieces, int] = {}
        self._only: int | None = None
        paths = match.paths + self._others.paths
        self._events = as_log(events).concerning(paths, self._code())
        rows = self._events.rows
        is_mapping = (rows["kind"] == MMAP) & (rows["pid"] != ANY_PID)
        self._history = MappingHistory(self._events, is_mapping, self._events.are_code_of(paths))
        self._timeline = self._history.timeline()
        self._spaces: dict[int, int] = {NONE: -1}
        """Of processes by their last mapping."""
        self._views: dict[int, Pieces] = {NONE: ()}
        """What they saw, newest last: where a sample asked, or the views of several begin."""
        behind = np.bincount(self._history.before[is_mapping] + 1, minlength=len(rows) + 1)
        self._is_shared: Bools = behind[1:] > 1
        self._most = _MOST_MAPPINGS * (1 + self._others.count)

    @classmethod
    def fixed(cls, layout: ImageLayout, bias: int = 0) -> AddressSpaces:
        """One space for every process, in which the image stands `bias` above its own addresses."""
        return cls.shared(layout, loaded(layout, bias))

    @classmethod
    def shared(cls, layout: ImageLayout, pieces: Pieces) -> AddressSpaces:
        """One space for every process."""
        spaces = cls((), layout, ImageMatch((), "as linked"))
        spaces._only = spaces._numbered(pieces)
        return spaces

    @property
    def bounds(self) -> U64:
        """(spaces, 2): half-open span that holds all pieces of each space.

        Without address 0, by which recorders say that they don't know.
        """
        new = self.pieces[len(self._bounds) :]
        if new:
            spans = [(max(p[0].start, 1), max(x.end for x in p)) for p in new]
            self._bounds = np.concatenate([self._bounds, np.array(spans, np.uint64)])
        return self._bounds

    def spaces_of(self, pids: I32, times: U64) -> I64:
        """The space that each process saw at that time, -1 where the image was not mapped.

        Arrays of equal length n in, (n,) int64 out.
        """
        if self._only is not None:
            return np.full(len(pids), self._only, np.int64)
        last = self._timeline.at(pids, times)
        # Of each run of samples with the same one, mostly a whole batch, the first is looked up.
        first = np.flatnonzero(begins(last))
        asked = distinct(last[first])
        spaces = np.array([self._space_at(each) for each in asked.tolist()], np.int64)
        of_runs = spaces[np.searchsorted(asked, last[first])]
        found = np.repeat(of_runs, np.diff(first, append=len(last)))
        is_any = pids == ANY_PID
        if is_any.any():
            found[is_any] = self._everywhere
        return found

    @cached_property
    def _everywhere(self) -> int:
        """The space of samples that don't say their process."""
        rows = self._events.rows
        mappings = np.flatnonzero(rows["kind"] == MMAP)
        names = ("start", "length", "file_offset", "text", "build_id", "flag")
        columns = [rows[name][mappings] for name in names]
        order = np.lexsort(columns)
        is_last = begins(*(column[order[::-1]] for column in columns))[::-1]
        latest = np.sort(mappings[order[is_last]])[-_MOST_EVERYWHERE:]
        return self._numbered(overlaid([p for i in latest.tolist() for p in self._shown(i)[1]]))

    def _space_at(self, last: int) -> int:
        """What a process saw whose last mapping that is."""
        if last not in self._spaces:
            reach = self._most
            while (view := self._view_of(last, reach)) is None:
                reach *= 4
            self._views[last] = view
            self._spaces[last] = self._numbered(view)
        return self._spaces[last]

    def _view_of(self, last: int, reach: int) -> Pieces | None:
        """The same as pieces, newest last, from so many mappings; None if more may show."""
        chain = self._history.up_to(last, reach, self._views)
        behind = int(self._history.before[chain[0]]) if chain else last
        # Mappings only take from those before them: the newest are known without the oldest.
        view, is_whole = self._views.get(behind, ()), behind in self._views
        for number in chain:
            event, shown = self._shown(number)
            if view or shown:
                view = (without(view, event.start, event.end) + shown)[-self._most :]
            is_whole |= len(view) == self._most
            if is_whole and self._is_shared[number]:
                self._views[number] = view
        return view if is_whole else None

    def _shown(self, number: int) -> tuple[Mmap, Pieces]:
        """A mapping by its number, and what it shows of the image."""
        event = self._events[number]
        assert isinstance(event, Mmap)
        is_own = self._match.shows(event)
        return event, pieces_of(event, self._layout) if is_own else self._others.pieces(event)

    def _code(self) -> U64:
        """Where code is in the files of all images: offsets (k, 2)."""
        segments = [s for each in (self._layout, *self._others.layouts) for s in each.segments]
        found = [(s.file_offset, s.file_offset + s.file_size) for s in segments if s.executable]
        return np.array(found, np.uint64).reshape(-1, 2)

    def _numbered(self, pieces: Pieces) -> int:
        """The space in which the image is seen so; -1 if it is not."""
        if not self._is_program(pieces):
            return -1
        view = joined(pieces)
        space = self._numbers.setdefault(view, len(self.pieces))
        if space == len(self.pieces):
            self.pieces.append(view)
        return space

    def _is_program(self, pieces: Pieces) -> bool:
        if not self._others.count:
            return bool(pieces)
        enough = self._others.enough | {0}
        return any(piece.slot in enough for piece in pieces)

    def to_image(
        self, spaces: I64 | int, addresses: RuntimeAddresses
    ) -> tuple[PlacedAddresses, Bools]:
        """Translate run-time addresses (n,) or (n, k) of spaces (n,), or of one.

        Returns placed addresses, 0 for those outside, and which are in the image: none where the
        space is negative.
        """
        image, piece = self.to_pieces(spaces, addresses)
        return image, piece >= 0

    def to_pieces(
        self, spaces: I64 | int, addresses: RuntimeAddresses
    ) -> tuple[PlacedAddresses, I64]:
        """The same, but with the number of its space's piece that each lies in, -1 outside."""
        columns = addresses if addresses.ndim > 1 else addresses[:, np.newaxis]
        of_rows = np.broadcast_to(np.asarray(spaces), len(addresses))
        image, piece = translate(of_rows, columns, *self._tables)
        return placed_addresses(image.reshape(addresses.shape)), piece.reshape(addresses.shape)

    @property
    def _tables(self) -> tuple[I64, U64]:
        """Where the pieces of each space begin (s + 1,), and all pieces (p, 3), for `translate`."""
        new = self.pieces[len(self._offsets) - 1 :]
        if new:
            rows = [(p.start, p.end, p.bias & LAST_ADDRESS) for pieces in new for p in pieces]
            ends = self._offsets[-1] + np.cumsum([len(pieces) for pieces in new])
            self._offsets = np.concatenate([self._offsets, ends])
            self._pieces = np.concatenate([self._pieces, np.array(rows, np.uint64)])
        return self._offsets, self._pieces

    def runs_to_image(self, spaces: I64, runs: RuntimeAddresses) -> tuple[PlacedAddresses, Bools]:
        """Translate runs (n, 2) of several spaces, and tell which are of the image (n,).

        A run that starts and ends in different mappings of the image is none of it.
        """
        image, piece = self.to_pieces(spaces, runs)
        first, last = piece.T
        return image, (first == last) & (first >= 0)
