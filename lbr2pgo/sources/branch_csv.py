"""CSV of single branch records: columns for the source, the target and maybe the prediction.

Columns are found by name, in any order and case. Records are taken one by one, since nothing
says that neighbouring rows are neighbours in time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, BranchStacks, from_lists
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.base import (
    EventInfo,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
)
from lbr2pgo.sources.csv_text import CsvRow, places_of, read_rows, rows_of
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.errors import InputError

_NAMES = {
    "source": ("from", "from address", "from ip", "branch from", "source", "source address", "src"),
    "target": ("to", "to address", "to ip", "branch to", "target", "target address", "dst"),
    "missed": ("mispredict", "mispredicted", "mispred", "is mispredicted", "misp", "predicted"),
    "count": ("count", "samples", "weight"),
    "pid": ("pid", "process id"),
}
_NEEDED = ("source", "target")
_YES, _NO = ("1", "m", "y", "yes", "true"), ("0", "p", "n", "no", "false", "", "-")
_ADDRESS = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
_BATCH = 1 << 15
_DAMAGED = Doubt("damaged: rows that hold no branch")


class BranchCsv(ShownShortly):
    """A `StackSource` of samples with one entry each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._health: Counter[str] = Counter()

    @property
    def info(self) -> SourceInfo:
        """One event, whose entries are single branches."""
        events = (EventInfo("branches", records_single_branches=True),)
        return SourceInfo(str(self._path), FORMAT.name, events=events)

    def space_events(self) -> Sequence[SpaceEvent]:
        """None: addresses are those of the binary."""
        return ()

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield every record once; `resolve` is not needed."""
        self._health = Counter()
        rows = read_rows(self._path)
        places = _header(rows, self._path)
        records = []
        for row in rows:
            if not row.filled:
                continue
            record = _record(row, places)
            if record is None:
                self._health[_DAMAGED] += 1
                continue
            records.append(record)
            if len(records) == _BATCH:
                yield _batch(records)
                records = []
        if records:
            yield _batch(records)

    def health(self) -> Mapping[str, int]:
        """Rows that can't be read."""
        return dict(self._health)


def _header(rows: Iterator[CsvRow], path: Path) -> dict[str, int]:
    for row in rows:
        places = places_of(row, _NAMES)
        if all(name in places for name in _NEEDED):
            return _with_sense(row, places)
    raise InputError(
        "holds no header with a source and a target",
        where=str(path),
        cure="The first row must name the columns: from,to,mispredict.",
    )


def _with_sense(header: CsvRow, places: dict[str, int]) -> dict[str, int]:
    """The places; a column that is called `predicted` tells the opposite."""
    at = places.get("missed")
    if at is not None and header.cells[at].lower().strip() == "predicted":
        places["predicted"] = places.pop("missed")
    return places


def _record(row: CsvRow, places: Mapping[str, int]) -> tuple[int, int, int, int, int] | None:
    """Source, target, flags, count and pid; None if the row is damaged."""
    cells = {name: row.cells[i] for name, i in places.items() if i < len(row.cells)}
    source, target = (_address(cells.get(name, "")) for name in _NEEDED)
    flags, count = _flags(cells), _whole(cells.get("count", "1"))
    pid = _whole(cells["pid"]) if "pid" in cells else -1
    if source is None or target is None or flags is None or count is None or pid is None:
        return None
    return source, target, flags, count, pid


def _address(text: str) -> int | None:
    """A hexadecimal address, with or without 0x."""
    return int(text, 16) if _ADDRESS.fullmatch(text) else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _flags(cells: Mapping[str, str]) -> int | None:
    """What is said of the prediction; 0 where nothing is, None if it can't be read."""
    for name, if_yes, if_no in (
        ("missed", MISPREDICTED, PREDICTED),
        ("predicted", PREDICTED, MISPREDICTED),
    ):
        said = cells.get(name)
        if said is not None:
            word = said.lower()
            return if_yes if word in _YES else if_no if word in _NO else None
    return 0


def _batch(records: Sequence[tuple[int, int, int, int, int]]) -> BranchStacks:
    batch = from_lists([[record[:3]] for record in records])
    pid = np.array([record[4] for record in records], np.int32)
    return replace(
        batch,
        pid=pid,
        tid=pid,
        event=np.zeros(len(records), np.int32),
        weight=np.array([record[3] for record in records], np.uint64),
    )


def sniff(head: bytes) -> Sniff:
    """Recognise the header in the first row that holds anything."""
    text = head.decode("utf-8-sig", "replace")
    if b"\0" in head or "," not in text:
        return Sniff.NO
    try:
        first = next((row for row in rows_of(text) if row.filled), None)
    except InputError:
        return Sniff.NO
    known = first is not None and all(name in places_of(first, _NAMES) for name in _NEEDED)
    return Sniff.YES if known else Sniff.NO


FORMAT = SourceFormat(
    name="branch records as CSV",
    summary="single branches by address: columns from, to and mispredict, found by name",
    references=("this module",),
    sniff=sniff,
    open=BranchCsv,
)
