"""Exact counts from what the plugin counted: blocks and targets, put into images and summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.model.exact_counts import ANONYMOUS, UNKNOWN, ExactCounts, Totals
from lbr2pgo.recorders.front_end import STRUCTURES, FrontEnd, FrontEndCounts
from lbr2pgo.recorders.plugin_stream import (
    BLOCK,
    BLOCK_COUNT,
    NOWHERE,
    TARGET_COUNT,
    Counters,
    Stream,
)
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.errors import InputError

_COND = BRANCH_TYPES.index("COND")
Rows = dict[str, npt.NDArray[Any]]


def sum_totals(counters: Sequence[Counters]) -> Totals:
    """What all processors together did."""
    names = ("instructions", "taken", "not_taken", "mispredicted")
    return Totals(*(sum(int(c.totals[name]) for c in counters) for name in names))


def sum_front_end(counters: Sequence[Counters], front_end: FrontEnd) -> FrontEndCounts:
    """What all processors together did in the front ends that they simulate, each in its own."""
    wrong = ("wrong_directions", "wrong_targets", "wrong_returns")
    names = ("instructions", "taken", *STRUCTURES, *wrong)
    return FrontEndCounts(
        front_end, *(sum(int(c.totals[name]) for c in counters) for name in names)
    )


@dataclass
class StreamImages:
    """The mapped files, and how run-time addresses become theirs."""

    paths: list[str] = field(default_factory=list)
    build_ids: list[str | None] = field(default_factory=list)
    _segments: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    """Of each image's segments, the executable ones first: file offset, file size, address."""

    def index(self, path: str) -> int:
        """Number of a file, read when it is first asked for."""
        if path not in self.paths:
            build_id, segments = _read_image(path)
            self.paths.append(path)
            self.build_ids.append(build_id)
            self._segments.append(segments)
        return self.paths.index(path)

    def shift(self, mapping: Mmap) -> int:
        """What to add to a run-time address in a mapping to get the image address."""
        begin, end = mapping.file_offset, mapping.file_offset + mapping.length
        for offset, size, address in self._segments[self.index(mapping.path)]:
            if offset < end and begin < offset + size:
                return address - offset + begin - mapping.start
        return 0


def _read_image(path: str) -> tuple[str | None, tuple[tuple[int, int, int], ...]]:
    from lbr2pgo.program.elf.image import Image

    if path in (ANONYMOUS, UNKNOWN):
        return None, ()
    try:
        layout = Image.open(path).layout
    except InputError:
        return None, ()
    segments = sorted(layout.segments, key=lambda s: not s.executable)
    return layout.build_id, tuple((s.file_offset, s.file_size, s.address) for s in segments)


def exact_counts(streams: Sequence[Stream]) -> ExactCounts:
    """Everything that the processes of a recording counted, in image addresses."""
    images = StreamImages()
    by_name = {stream.path.name: stream for stream in streams}
    rows: list[Rows] = []
    for stream in streams:
        places = _Places(images, _inherited_maps(stream, by_name))
        blocks = _numbered(_inherited_blocks(stream, by_name))
        rows.append(_direct_rows(blocks, stream.counters, places))
        rows.append(_indirect_rows(blocks, stream.counters, places))
    columns = {name: np.concatenate([r[name] for r in rows]) for name in rows[0]}
    totals = sum_totals([c for stream in streams for c in stream.counters])
    # A process that is killed may leave a branch in the rows that is not in the totals yet.
    uncounted = max(0, totals.taken + totals.not_taken - int(columns["count"].sum()))
    return ExactCounts.from_rows(columns, images.paths, images.build_ids, totals, uncounted)


def _inherited_blocks(stream: Stream, by_name: dict[str, Stream]) -> npt.NDArray[np.void]:
    parent = by_name.get(stream.start.parent_stream)
    if parent is None:
        return stream.blocks
    inherited = _inherited_blocks(parent, by_name)
    return np.concatenate([inherited[inherited["number"] <= stream.start.blocks], stream.blocks])


def _inherited_maps(stream: Stream, by_name: dict[str, Stream]) -> dict[int, Mmap]:
    parent = by_name.get(stream.start.parent_stream)
    if parent is None:
        return stream.maps
    inherited = _inherited_maps(parent, by_name)
    return {s: m for s, m in inherited.items() if s <= stream.start.maps} | stream.maps


def _numbered(blocks: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Blocks such that block number `i` stands at index `i`; gaps have the number 0."""
    highest = int(blocks["number"].max()) if len(blocks) else 0
    table = np.zeros(highest + 1, BLOCK)
    table[blocks["number"]] = blocks
    return table


class _Places:
    """Run-time addresses of one process to images, through the mappings it had."""

    def __init__(self, images: StreamImages, maps: dict[int, Mmap]) -> None:
        highest = max(maps, default=0)
        unknown = images.index(UNKNOWN)
        self._image = np.full(highest + 1, unknown, np.int32)
        self._shift = np.zeros(highest + 1, np.uint64)  # modulo 2**64
        self._start = np.zeros(highest + 1, np.uint64)
        self._end = np.zeros(highest + 1, np.uint64)
        for serial, mapping in maps.items():
            self._image[serial] = images.index(mapping.path)
            self._shift[serial] = images.shift(mapping) % 2**64
            self._start[serial] = mapping.start
            self._end[serial] = mapping.start + mapping.length

    def find(self, address: U64, serial: I64) -> tuple[npt.NDArray[np.int32], U64]:
        """Image and image address of run-time addresses in the mappings `serial`."""
        return self._image[serial], address + self._shift[serial]

    def mapping_of(self, address: U64, near: I64) -> I64:
        """The mapping of a direct branch's target: `near` holds it, or else the newest does."""
        inside = (self._start[near] <= address) & (address < self._end[near])
        found = np.where(inside, near, 0)
        for i in np.flatnonzero(~inside):
            holds = (self._start <= address[i]) & (address[i] < self._end)
            found[i] = np.flatnonzero(holds)[-1] if holds.any() else 0
        return found


def _direct_rows(
    blocks: npt.NDArray[np.void], counters: Sequence[Counters], places: _Places
) -> Rows:
    """Direct branches taken, and conditional ones not taken."""
    counts = np.zeros(len(blocks), BLOCK_COUNT)
    for c in counters:
        n = min(len(blocks), len(c.counts))
        for name in BLOCK_COUNT.names or ():
            counts[name][:n] += c.counts[name][:n]
    parts = []
    for taken in (True, False):
        outcome = "taken" if taken else "not_taken"
        known = blocks["target"] != NOWHERE if taken else blocks["kind"] == _COND
        rows = np.flatnonzero((counts[outcome] > 0) & known)
        parts.append(
            _rows(
                places,
                blocks[rows],
                to=blocks["target" if taken else "end"][rows],
                to_map=None,
                taken=taken,
                count=counts[outcome][rows],
                mispredicted=counts[f"{outcome}_mispredicted"][rows],
            )
        )
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _indirect_rows(
    blocks: npt.NDArray[np.void], counters: Sequence[Counters], places: _Places
) -> Rows:
    """Indirect jumps, indirect calls and returns, by target."""
    targets = np.concatenate([np.zeros(0, TARGET_COUNT), *(c.targets for c in counters)])
    described = (targets["block"] < len(blocks)) & (targets["target_block"] < len(blocks))
    targets = targets[described]
    to = blocks[targets["target_block"]]
    return _rows(
        places,
        blocks[targets["block"]],
        to=to["start"],
        to_map=to["map"].astype(np.int64),
        taken=True,
        count=targets["count"],
        mispredicted=targets["mispredicted"],
    )


def _rows(
    places: _Places,
    blocks: npt.NDArray[np.void],
    *,
    to: U64,
    to_map: I64 | None,
    taken: bool,
    count: U64,
    mispredicted: U64,
) -> Rows:
    """`to_map` None: the target is a direct branch's, in the same mapping as a rule."""
    near = blocks["map"].astype(np.int64)
    from_image, from_ = places.find(blocks["from"], near)
    to_image, to = places.find(to, places.mapping_of(to, near) if to_map is None else to_map)
    return {
        "from_image": from_image,
        "from": from_,
        "to_image": to_image,
        "to": to,
        "taken": np.full(len(blocks), taken),
        "kind": blocks["kind"].astype(np.uint8),
        "count": count,
        "mispredicted": mispredicted,
    }
