"""Records that change address spaces as rows of a log, all those of a chunk at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.space_event_log import COMM, EVENT_ROW, EXIT, FORK, MMAP, SpaceEventLog
from lbr2pgo.sources.perf_data.attr import PerfAttr, id_field, times_everything
from lbr2pgo.sources.perf_data.features import decode
from lbr2pgo.support.arrays import I64, U8, U64, Bytes, Records

_PROT_EXEC = 4
_PID, _SECOND, _TID = 8, 12, 16
"""Of a fork or an exit the second is the parent's pid; of all others the tid."""
_START, _LENGTH, _OFFSET = 16, 24, 32
_IDENTITY, _PROTECTION = 40, 64
_TEXT = {abi.RECORD_MMAP: 40, abi.RECORD_MMAP2: 72, abi.RECORD_COMM: 16}
_FIXED = {**_TEXT, abi.RECORD_FORK: 20, abi.RECORD_EXIT: 20}
SPACE_TYPES = tuple(_FIXED)
"""Of the records that are read here."""


def _field(data: Bytes, places: I64, dtype: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A little-endian number at each place (n,); IndexError behind the data."""
    width = np.arange(np.dtype(dtype).itemsize)
    found: I64 = data[places[:, None] + width].view(dtype)[:, 0]
    return found


class RecordTimes:
    """Finds the time in the `sample_id` that ends every record but samples.

    Where some records have none, only the order in the file orders all of them.
    """

    def __init__(self, attrs: Sequence[PerfAttr]) -> None:
        self._are_positions = not times_everything(attrs)
        places = {i: attr.trailer_offset(abi.SAMPLE_TIME) or 0 for attr in attrs for i in attr.ids}
        self._ids = np.array(sorted(places), np.uint64)
        self._places = np.array([places[i] for i in sorted(places)], np.int64)
        self._first = (attrs[0].trailer_offset(abi.SAMPLE_TIME) or 0) if attrs else 0
        told_apart_by = id_field(attrs) if len(attrs) > 1 else None
        self._id_at = None if told_apart_by is None else attrs[0].trailer_offset(told_apart_by)

    def of(self, data: Bytes, at: I64, sizes: I64, positions: U64) -> U64:
        """Nanoseconds (n,) of the records at these places of the data, which it holds whole.

        The position where times are positions, or the record is too short.
        """
        times = positions.copy()
        if self._are_positions:
            return times
        places = self._of_ids(data, at, sizes)
        has_time = (places < 0) & (sizes + places >= abi.RECORD_HEADER.size)
        times[has_time] = _field(data, (at + sizes + places)[has_time], "<u8")
        return times

    def _of_ids(self, data: Bytes, at: I64, sizes: I64) -> I64:
        """Where each time stands, from its record's end; 0: nowhere."""
        places = np.full(len(at), self._first, np.int64)
        if self._id_at is not None and len(self._ids):
            has_id = np.flatnonzero(sizes + self._id_at >= abi.RECORD_HEADER.size)
            ids = _field(data, (at + sizes + self._id_at)[has_id], "<u8")
            row = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            is_known = self._ids[row] == ids
            places[has_id[is_known]] = self._places[row[is_known]]
        return places


class SpaceRecords:
    """Collects them, with each path and name once."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are so far."""
        self._rows: list[Records] = []
        self._texts: list[str | None] = [None]
        self._numbers: dict[bytes, int] = {}
        self._build_ids: dict[bytes, int] = {}

    def add(self, data: Bytes, at: I64, position: int, attrs: Sequence[PerfAttr]) -> int:
        """Read the records at these places (n,) of data that stands at `position` of the file.

        Returns how many were too short for their fields, and left out.
        """
        sizes = _field(data, at + 6, "<u2").astype(np.int64)
        kinds = _field(data, at, "<u4")
        needed = np.zeros(len(at), np.int64)
        for kind, size in _FIXED.items():
            needed[kinds == kind] = size
        fits = sizes >= needed
        at, sizes, kinds = at[fits], sizes[fits], kinds[fits]
        rows = np.zeros(len(at), EVENT_ROW)
        positions = at.astype(np.uint64) + np.uint64(position)
        rows["time"] = RecordTimes(attrs).of(data, at, sizes, positions)
        rows["pid"] = _field(data, at + _PID, "<i4")
        rows["other"] = _field(data, at + _SECOND, "<i4")
        for kind, read in (
            (abi.RECORD_MMAP, self._mappings),
            (abi.RECORD_MMAP2, self._mappings),
            (abi.RECORD_COMM, self._names),
            (abi.RECORD_FORK, self._forks),
            (abi.RECORD_EXIT, self._exits),
        ):
            chosen = np.flatnonzero(kinds == kind)
            if len(chosen):
                rows[chosen] = read(rows[chosen], data, at[chosen], sizes[chosen])
        self._rows.append(rows)
        self.count += len(rows)
        return int(np.count_nonzero(~fits))

    def log(self) -> SpaceEventLog:
        """All of them."""
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, EVENT_ROW)
        self._rows.clear()
        return SpaceEventLog.of_rows(rows, self._texts)

    def _mappings(self, rows: Records, data: Bytes, at: I64, sizes: I64) -> Records:
        kind = int(_field(data, at[:1], "<u4")[0])
        misc = _field(data, at + 4, "<u2")
        is_code = (misc & abi.MISC_MMAP_DATA) == 0
        rows["kind"] = MMAP
        rows["start"] = _field(data, at + _START, "<u8")
        rows["length"] = _field(data, at + _LENGTH, "<u8")
        rows["file_offset"] = _field(data, at + _OFFSET, "<u8")
        rows["text"] = self._texts_at(data, at + _TEXT[kind], at + sizes)
        if kind == abi.RECORD_MMAP2:
            # Mappings that perf made up, the kernel's for instance, may state no protection at all.
            protection = _field(data, at + _PROTECTION, "<u4")
            is_code &= (protection == 0) | ((protection & _PROT_EXEC) != 0)
            known = np.flatnonzero(misc & abi.MISC_MMAP_BUILD_ID)
            identities = data[at[known, None] + np.arange(_IDENTITY, _PROTECTION)]
            rows["build_id"][known] = [self._build_id(each) for each in identities]
        rows["flag"] = is_code
        return rows

    def _names(self, rows: Records, data: Bytes, at: I64, sizes: I64) -> Records:
        rows["kind"] = COMM
        rows["flag"] = (_field(data, at + 4, "<u2") & abi.MISC_COMM_EXEC) != 0
        rows["text"] = self._texts_at(data, at + _TEXT[abi.RECORD_COMM], at + sizes)
        return rows

    def _forks(self, rows: Records, data: Bytes, at: I64, _: I64) -> Records:
        rows["kind"] = FORK
        rows["start"] = _field(data, at + _TID, "<i4").astype(np.int64).view(np.uint64)
        return rows

    def _exits(self, rows: Records, data: Bytes, at: I64, _: I64) -> Records:
        rows["kind"] = EXIT
        rows["other"] = _field(data, at + _TID, "<i4")
        return rows

    def _texts_at(self, data: Bytes, starts: I64, ends: I64) -> list[int]:
        """Numbers of the texts there, each up to its first zero."""
        raw, numbers = data.data, self._numbers
        found = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            text = bytes(raw[start:end]).partition(b"\0")[0]
            number = numbers.get(text)
            if number is None:
                number = numbers[text] = self._new(decode(text))
            found.append(number)
        return found

    def _build_id(self, identity: U8) -> int:
        """Of a byte with the length, three that are reserved, and the build-id; 0: none."""
        raw = identity[4 : 4 + min(int(identity[0]), abi.BUILD_ID_BYTES)].tobytes()
        if not raw:
            return 0
        if raw not in self._build_ids:
            self._build_ids[raw] = self._new(raw.hex())
        return self._build_ids[raw]

    def _new(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1
