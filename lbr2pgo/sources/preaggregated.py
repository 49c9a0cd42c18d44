"""BOLT's pre-aggregated profiles: branches, fall-throughs and traces with their counts.

Rows are those of LLVM: bolt/include/bolt/Profile/DataAggregator.h (22). An address may have the
build-id of its file before it, `X` if that is unknown; without one it is of the main program. So
if the image's own build-id occurs in a file, only rows with it are the image's, otherwise those
without any are. Addresses that are not code of the image are outside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    OUTSIDE,
    RETURN,
    TO,
    BranchCounts,
    aggregate,
    with_unknown_predictions,
)
from lbr2pgo.model.count_sums import merge
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.model.instruction_counts import aggregate as aggregate_samples
from lbr2pgo.model.instruction_counts import merge as merge_samples
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import (
    SNIFF_SIZE,
    Addresses,
    EventInfo,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
)
from lbr2pgo.sources.code_addresses import are_code
from lbr2pgo.sources.text_lines import CHUNK_SIZE, LineReader
from lbr2pgo.support import headway
from lbr2pgo.support.addresses import PlacedAddresses, are_of_kernel, image_addresses
from lbr2pgo.support.arrays import U8, U64, Bools
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.sums import exact_sum, refuse_too_many
from lbr2pgo.support.tables import taken

if TYPE_CHECKING:
    from lbr2pgo.sources._preaggregated import Rows

_NAME = "BOLT pre-aggregated"

# LLVM: DataAggregator.h, struct Trace.
RUN_ONLY, RUN_FROM_OUTSIDE, RUN_FROM_RETURN = 2**64 - 1, 2**64 - 2, 2**64 - 3
"""As the branch of a trace: it is a bare fall-through; of `F`, `f` and `r`."""
EXTERNAL = 0
"""An address outside the image."""

_ROWS_AT_LEAST = 1 << 18

_WORD = rb"[0-9A-Za-z]*:?[0-9a-fA-F]+"
_ROW = re.compile(
    rb"[ \t]*(?:[TR](?:[ \t]+%b){3}|[BFfr](?:[ \t]+%b){2}|S[ \t]+%b)(?:[ \t]|\r?$)"
    % (_WORD, _WORD, _WORD)
)
_EVENT = re.compile(rb"^[ \t]*E[ \t]+(\S+)[ \t]*\r?$", re.MULTILINE)
# Blanks are matched in one way only: a line of nothing else must not take quadratic time.
_NEUTRAL = re.compile(rb"\s*+(?:#.*|E[ \t]++\S++\s*+)?")
_ROW_BEGINNING = re.compile(rb"[ \t]*+[TRBFfrSE]?(?:[ \t][0-9A-Za-z: \t]*+)?")


def _sniff(head: bytes) -> Sniff:
    lines = head.split(b"\n")
    for i, line in enumerate(lines):
        is_whole = i < len(lines) - 1
        if _NEUTRAL.fullmatch(line):
            continue
        if _ROW.match(line):
            return Sniff.YES
        return Sniff.NO if is_whole or not _may_begin_row(line) else Sniff.MORE
    return Sniff.MORE


def _may_begin_row(line: bytes) -> bool:
    """Whether the cut-off end of the head may become a row."""
    return _ROW_BEGINNING.fullmatch(line) is not None


@dataclass(frozen=True, slots=True)
class _Traces:
    """Columns as in `BranchCounts`, in any order, with zero counts."""

    from_: PlacedAddresses
    to: PlacedAddresses
    end: PlacedAddresses
    known: U8
    count: U64
    mispredicted: U64

    def take(self, rows: Bools) -> _Traces:
        return taken(self, rows)

    def tell(self) -> Bools:
        """Whether each row says anything of the image: a branch in or out of it, or a run."""
        is_branch: Bools = (self.known & BRANCH != 0) & (self.known & (FROM | TO) != 0)
        is_run: Bools = np.equal(self.known & (TO | END), TO | END)
        return is_branch | is_run


def _no_rows() -> _Traces:
    none = np.zeros(0, dtype=np.uint64)
    nowhere = image_addresses(none)
    return _Traces(nowhere, nowhere, nowhere, none.astype(np.uint8), none, none)


class Preaggregated(ShownShortly):
    """A pre-aggregated file. Implements `CountSource`."""

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        self._reader = LineReader(path, chunk_size)
        self._health: Counter[str] = Counter()
        head = next((text[:SNIFF_SIZE] for text, _ in self._reader.chunks()), b"")
        names = dict.fromkeys(name.decode("utf-8", "replace") for name in _EVENT.findall(head))
        self.info = SourceInfo(str(path), _NAME, Addresses.IMAGE, tuple(map(EventInfo, names)))
        """The file's name, and the events that its head names."""

    def health(self) -> Mapping[str, int]:
        """What the last reading skipped."""
        return dict(self._health)

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts of one image, whose addresses the file holds."""
        own = self._own_images(layout.build_id)
        with headway.part_of(_passes(layout.build_id), 1):
            return self._branch_counts(layout, own)

    def _branch_counts(self, layout: ImageLayout, own: U64) -> BranchCounts:
        self._health = Counter()
        parts, surplus = [_aggregate(_no_rows(), layout)], [_no_rows()]
        for text, _ in self._reader.chunks():
            piece = self._read(text)
            inside = are_code(layout, image_addresses(piece.address)) & np.isin(piece.image, own)
            rows = self._select(piece, _traces(piece, inside))
            parts = _add_part(parts, _aggregate(rows, layout))
            surplus.append(rows.take((rows.count == 0) & (rows.mispredicted > 0)))
        self._health[Doubt("bytes in lines too long to be read")] = self._reader.overlong_bytes
        counts = _distribute_mispredictions(merge(parts), _join(surplus))
        return with_unknown_predictions(counts)

    def instruction_counts(self, layout: ImageLayout) -> InstructionCounts:
        """The basic samples (`S`) of one image."""
        own = self._own_images(layout.build_id)
        with headway.part_of(_passes(layout.build_id), 1):
            return self._sample_counts(layout, own)

    def _sample_counts(self, layout: ImageLayout, own: U64) -> InstructionCounts:
        self._health = Counter()
        parts = [aggregate_samples(*np.zeros((2, 0), np.uint64))]
        read = in_kernel = 0
        for text, _ in self._reader.chunks():
            piece = self._read(text)
            rows = _letters(piece, "S")
            address, count = image_addresses(piece.address[rows, 0]), piece.amount[rows]
            inside = are_code(layout, address) & np.isin(piece.image[rows, 0], own)
            read += exact_sum(count)
            in_kernel += exact_sum(count[~inside & are_of_kernel(address)])
            parts.append(aggregate_samples(address[inside], count[inside]))
            self._health["rows of branches, where samples were asked for"] += int((~rows).sum())
        counts = merge_samples(parts)
        tallies = waterfall.of_instructions(read, counts.total, in_kernel)
        return replace(counts, build_id=layout.build_id, tallies=tallies)

    def _select(self, piece: Rows, rows: _Traces) -> _Traces:
        """The rows that tell something of the image; notes the others."""
        is_sample, tells = _letters(piece, "S"), rows.tell()
        samples = int(np.count_nonzero(is_sample))
        self._health["rows of basic samples (S), which tell of no branch"] += samples
        self._health["rows outside the image"] += int(np.count_nonzero(~tells & ~is_sample))
        return rows.take(tells & ~is_sample)

    def _own_images(self, build_id: str | None) -> U64:
        """Hashes of the build-ids that mark the image's rows; 0 stands for none."""
        wanted = (build_id or "").lower()
        found: list[int] = []
        if wanted:
            with headway.part_of(_passes(build_id), 0):
                for text, _ in self._reader.chunks():
                    images = self._read(text).images
                    found += [h for h, name in images.items() if _is(name, wanted)]
        return np.array(found or [0], dtype=np.uint64)

    def _read(self, text: bytes) -> Rows:
        from lbr2pgo.sources._preaggregated import read_rows

        rows = read_rows(text)
        self._health[Doubt("lines that are no row")] += rows.bad_lines
        return rows


def _passes(build_id: str | None) -> list[int]:
    """How often the file is read to see what images its rows are of, and to read the rows."""
    return [1 if build_id else 0, 1]


def _is(name: bytes, build_id: str) -> bool:
    return name.decode("ascii", "replace").lower() == build_id


def _add_part(parts: list[BranchCounts], part: BranchCounts) -> list[BranchCounts]:
    """Add to the parts of a total; the small ones are merged once they make up the large one."""
    parts = [*parts, part]
    if sum(map(len, parts[1:])) < max(len(parts[0]), _ROWS_AT_LEAST):
        return parts
    return [merge(parts)]


def _aggregate(rows: _Traces, layout: ImageLayout) -> BranchCounts:
    columns = rows.from_, rows.to, rows.end, rows.known, rows.count, rows.mispredicted
    return aggregate(*columns, build_id=layout.build_id)


def _letters(piece: Rows, letters: str) -> Bools:
    return np.isin(piece.kind, np.frombuffer(letters.encode(), dtype=np.uint8))


def _traces(piece: Rows, inside: Bools) -> _Traces:
    """Rows as traces: what each says of the image, and which of its addresses are known."""
    is_run, is_trace = _letters(piece, "Ffr"), _letters(piece, "TR")
    source = np.where(is_trace, piece.address[:, 0], EXTERNAL)
    from_return = _letters(piece, "Rr") | (source == RUN_FROM_RETURN)
    from_outside = _letters(piece, "fr") | np.isin(source, (RUN_FROM_OUTSIDE, RUN_FROM_RETURN))
    is_bare = is_run | from_outside | (source == RUN_ONLY)
    to_inside = np.where(is_run, inside[:, 0], inside[:, 1])
    end_inside = to_inside & np.where(is_run, inside[:, 1], inside[:, 2] & is_trace)
    bits = (
        (FROM, inside[:, 0] & ~is_bare),
        (TO, to_inside),
        (END, end_inside),
        (BRANCH, ~is_bare),
        (RETURN, from_return),
        (OUTSIDE, from_outside),
    )
    known = np.zeros(len(is_run), dtype=np.uint8)
    for bit, is_set in bits:
        known |= np.where(is_set, bit, 0).astype(np.uint8)
    return _Traces(
        from_=image_addresses(piece.address[:, 0]),
        to=np.where(is_run, piece.address[:, 0], piece.address[:, 1]),
        end=np.where(is_run, piece.address[:, 1], piece.address[:, 2]),
        known=known,
        count=piece.amount,
        mispredicted=piece.mispredicted,
    )


def _join(pieces: Sequence[_Traces]) -> _Traces:
    return _Traces(
        from_=np.concatenate([piece.from_ for piece in pieces]),
        to=np.concatenate([piece.to for piece in pieces]),
        end=np.concatenate([piece.end for piece in pieces]),
        known=np.concatenate([piece.known for piece in pieces]),
        count=np.concatenate([piece.count for piece in pieces]),
        mispredicted=np.concatenate([piece.mispredicted for piece in pieces]),
    )


def _distribute_mispredictions(counts: BranchCounts, surplus: _Traces) -> BranchCounts:
    """Give the rows of a branch the mispredictions that stand in `surplus` rows of it.

    A trace (`T`) has no place for them, so its writer adds a `B` row, which may then have more of
    them than its count; they go to the branch's rows in order, as many as each can take.
    """
    columns = counts.from_, counts.to, counts.end, counts.known, counts.count
    rows = _join([_Traces(*columns, counts.mispredicted), surplus])
    branch = rows.known & (FROM | TO | BRANCH)
    order = np.lexsort((branch, rows.to, rows.from_))
    refuse_too_many(rows.mispredicted)
    is_first = begins(rows.from_[order], rows.to[order], branch[order])
    starts, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    count, lost = rows.count[order], rows.mispredicted[order]
    is_over = np.logical_or.reduceat(lost > count, starts)[group]
    wanted = np.add.reduceat(lost, starts)[group].astype(np.int64)
    before = np.cumsum(count) - count
    before -= before[starts][group]
    share = np.clip(wanted - before.astype(np.int64), 0, count.astype(np.int64))
    spread = np.empty(len(order), dtype=np.uint64)
    spread[order] = np.where(is_over, share.astype(np.uint64), lost)
    return replace(counts, mispredicted=spread[: len(counts)])


FORMAT = SourceFormat(
    name=_NAME,
    summary="BOLT's pre-aggregated branches, fall-throughs and traces (perf2bolt -pa)",
    references=(
        "LLVM: bolt/include/bolt/Profile/DataAggregator.h, comment of parsePreAggregated",
        "LLVM: bolt/lib/Profile/DataAggregator.cpp parseAggregatedLBREntry",
    ),
    sniff=_sniff,
    open=Preaggregated,
)
