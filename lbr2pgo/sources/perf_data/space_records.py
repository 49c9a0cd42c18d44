"""Records that change address spaces, and the time behind them, as bytes of one record each."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.sources.perf_data.attr import PerfAttr, id_field, times_everything
from lbr2pgo.sources.perf_data.features import decode

_PROT_EXEC = 4
_MMAP = struct.Struct("<iiQQQ")
_MMAP2_TAIL = struct.Struct("<24sII")
_BODY = abi.RECORD_HEADER.size


class RecordTimes:
    """Finds the time in the `sample_id` that ends every record but samples.

    Where some records have none, only the order in the file orders all of them.
    """

    def __init__(self, attrs: Sequence[PerfAttr]) -> None:
        self._are_positions = not times_everything(attrs)
        self._time_by_id = {
            i: attr.trailer_offset(abi.SAMPLE_TIME) for attr in attrs for i in attr.ids
        }
        self._first_time = attrs[0].trailer_offset(abi.SAMPLE_TIME) if attrs else None
        told_apart_by = id_field(attrs) if len(attrs) > 1 else None
        self._id_at = None if told_apart_by is None else attrs[0].trailer_offset(told_apart_by)

    def time(self, record: bytes, position: int) -> int:
        """Nanoseconds, or `position` where times are positions or the record is too short."""
        at = None if self._are_positions else self._time_at(record)
        if at is None or len(record) + at < _BODY:
            return position
        return int.from_bytes(record[len(record) + at :][:8], "little")

    def _time_at(self, record: bytes) -> int | None:
        if self._id_at is None or len(record) + self._id_at < _BODY:
            return self._first_time
        sample_id = int.from_bytes(record[len(record) + self._id_at :][:8], "little")
        return self._time_by_id.get(sample_id, self._first_time)


def space_event(record: bytes, time: int) -> SpaceEvent | None:
    """What a record says of an address space; None if it is another kind of record.

    Raises struct.error if the record is too short for its type.
    """
    kind, misc, _ = abi.RECORD_HEADER.unpack_from(record)
    if kind == abi.RECORD_MMAP:
        return _mmap(record, misc, time)
    if kind == abi.RECORD_MMAP2:
        return _mmap2(record, misc, time)
    if kind == abi.RECORD_COMM:
        pid, tid = struct.unpack_from("<ii", record, _BODY)
        name = decode(record[_BODY + 8 :])
        return Comm(pid, tid, time, name, bool(misc & abi.MISC_COMM_EXEC))
    if kind in (abi.RECORD_FORK, abi.RECORD_EXIT):
        pid, parent, tid = struct.unpack_from("<iii", record, _BODY)
        return Fork(pid, parent, tid, time) if kind == abi.RECORD_FORK else Exit(pid, tid, time)
    return None


def _mmap(record: bytes, misc: int, time: int) -> Mmap:
    pid, tid, start, length, file_offset = _MMAP.unpack_from(record, _BODY)
    path = decode(record[_BODY + _MMAP.size :])
    executable = not misc & abi.MISC_MMAP_DATA
    return Mmap(pid, tid, time, start, length, file_offset, path, None, executable)


def _mmap2(record: bytes, misc: int, time: int) -> Mmap:
    pid, tid, start, length, file_offset = _MMAP.unpack_from(record, _BODY)
    identity, protection, _ = _MMAP2_TAIL.unpack_from(record, _BODY + _MMAP.size)
    path = decode(record[_BODY + _MMAP.size + _MMAP2_TAIL.size :])
    build_id = None
    if misc & abi.MISC_MMAP_BUILD_ID:
        build_id = identity[4 : 4 + min(identity[0], abi.BUILD_ID_BYTES)].hex() or None
    # Mappings that perf made up, the kernel's for instance, may state no protection at all.
    executable = not misc & abi.MISC_MMAP_DATA and (protection == 0 or protection & _PROT_EXEC)
    return Mmap(pid, tid, time, start, length, file_offset, path, build_id, bool(executable))
