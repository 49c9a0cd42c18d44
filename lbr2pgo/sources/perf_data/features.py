"""The feature sections of perf.data: event names, build-ids, and facts about the recording.

Layouts: perf: tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/header.c,
functions `process_*`. A section that is damaged raises struct.error or ValueError and nothing
else; only as many bytes are looked at as the section has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.sources.perf_data.attr import PerfAttr, parse_attr
from lbr2pgo.support.dataclass import dataclass

_TEXTS = {
    abi.FEATURE_HOSTNAME: "host",
    abi.FEATURE_OSRELEASE: "kernel",
    abi.FEATURE_VERSION: "perf",
    abi.FEATURE_CPUDESC: "cpu",
    abi.FEATURE_CPUID: "cpuid",
}
WANTED = (
    *_TEXTS, abi.FEATURE_BUILD_ID, abi.FEATURE_ARCH, abi.FEATURE_NRCPUS, abi.FEATURE_TOTAL_MEM,
    abi.FEATURE_CMDLINE, abi.FEATURE_EVENT_DESC, abi.FEATURE_GROUP_DESC,
    abi.FEATURE_SAMPLE_TIME, abi.FEATURE_META_INFO,
)  # fmt: skip

_META_TEXTS = {
    "simpleperf_version": "simpleperf",
    "product_props": "device",
    "android_version": "android",
}
_META_EVENTS = "event_type_info"

_BUILD_ID_NAME_AT = abi.RECORD_HEADER.size + 4 + 24
_KERNEL_NAME_TAIL = "nel.kallsyms]"


def describe(feature: int, section: bytes) -> Iterator[tuple[str, str]]:
    """Facts worth showing, as (label, text)."""
    if feature in _TEXTS:
        yield _TEXTS[feature], text_of(section)
    elif feature == abi.FEATURE_CMDLINE:
        yield "command", " ".join(_command_of(section))
    elif feature == abi.FEATURE_NRCPUS:
        yield "cpus", str(struct.unpack_from("<II", section)[1])
    elif feature == abi.FEATURE_TOTAL_MEM:
        yield "memory", f"{struct.unpack_from('<Q', section)[0]} KiB"
    elif feature == abi.FEATURE_META_INFO:
        known = _meta_info(section)
        yield from ((label, known[key]) for key, label in _META_TEXTS.items() if key in known)
    elif feature == abi.FEATURE_SAMPLE_TIME:
        first, last = sample_times(section)
        yield "time of first sample", f"{first} ns"
        yield "time of last sample", f"{last} ns"


def _meta_info(section: bytes) -> dict[str, str]:
    """What simpleperf says of a recording: keys and values, each up to a zero.

    simpleperf: record_file_writer.cpp, WriteMetaInfoFeature.
    """
    words = [word.decode("utf-8", "surrogateescape") for word in section.split(b"\0")[:-1]]
    return dict(zip(words[::2], words[1::2], strict=True))


def named_types(section: bytes) -> dict[tuple[int, int], str]:
    r"""Names of events by `type` and `config`, from simpleperf's meta information.

    A line each, as `cpu-cycles:u,0,0` (simpleperf: cmd_record.cpp, DumpMetaInfoFeature).

    >>> named_types(b"event_type_info\0cpu-cycles,0,0\nraw-br,4,33\0")
    {(0, 0): 'cpu-cycles', (4, 33): 'raw-br'}
    """
    rows = [line.rsplit(",", 2) for line in _meta_info(section).get(_META_EVENTS, "").splitlines()]
    return {(int(kind), int(config)): name for name, kind, config in rows}


def sample_times(section: bytes) -> tuple[int, int]:
    """When the first and the last sample were taken, in nanoseconds."""
    first, last = struct.unpack_from("<QQ", section)
    return first, last


def text_of(section: bytes, at: int = 0) -> str:
    """A string of the header: its padded length, then its bytes up to a zero."""
    (length,) = struct.unpack_from("<I", section, at)
    raw = section[at + 4 : at + 4 + length]
    if len(raw) != length:
        raise ValueError("a string runs past its section")
    return decode(raw)


def decode(raw: bytes) -> str:
    """Bytes up to the first zero; what is no UTF-8 survives as surrogates."""
    return raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _after_text(section: bytes, at: int) -> int:
    (length,) = struct.unpack_from("<I", section, at)
    return at + 4 + int(length)


def _command_of(section: bytes) -> Iterator[str]:
    (count,) = struct.unpack_from("<I", section)
    at = 4
    for _ in range(count):
        yield text_of(section, at)
        at = _after_text(section, at)


def event_descriptions(section: bytes) -> list[PerfAttr]:
    """The events with their names and ids."""
    count, attr_size = struct.unpack_from("<II", section)
    if attr_size < abi.ATTR_SIZE_FIRST:
        raise ValueError("an attr is shorter than the first published one")
    at = 8
    events = []
    for _ in range(count):
        raw = section[at : at + attr_size]
        (id_count,) = struct.unpack_from("<I", section, at + attr_size)
        name = text_of(section, at + attr_size + 4)
        at = _after_text(section, at + attr_size + 4)
        ids = section[at : at + 8 * id_count]
        if len(ids) != 8 * id_count:
            raise ValueError("the ids run past their section")
        events.append(parse_attr(raw, struct.unpack(f"<{id_count}Q", ids), name))
        at += 8 * id_count
    return events


def event_groups(section: bytes) -> list[range]:
    """Groups of events that were counted together, as places among all events."""
    (count,) = struct.unpack_from("<I", section)
    at = 4
    groups = []
    for _ in range(count):
        at = _after_text(section, at)
        leader, members = struct.unpack_from("<II", section, at)
        groups.append(range(leader, leader + members))
        at += 8
    return groups


@dataclass(frozen=True, slots=True)
class BuildIdRecord:
    """One `struct perf_record_header_build_id`."""

    path: str
    build_id: str


def build_ids(section: bytes) -> Mapping[str, str]:
    """Lower-case hex build-ids by path.

    perf 6.12 wrote 36 bytes of zeros behind every record (google/autofdo issue 233), so zeros
    between records are skipped. Before Linux 2.6.36 the pid was missing (perf:
    perf_header__read_build_ids_abi_quirk).
    """
    records = list(_build_id_records(section, 0))
    if any(record.path.startswith(_KERNEL_NAME_TAIL) for record in records):
        records = list(_build_id_records(section, -4))
    return {record.path: record.build_id for record in records if record.build_id}


def _build_id_records(section: bytes, shift: int) -> Iterator[BuildIdRecord]:
    at = 0
    while at + abi.RECORD_HEADER.size <= len(section):
        _, _, size = abi.RECORD_HEADER.unpack_from(section, at)
        if size == 0:
            at += 4
            continue
        if size < _BUILD_ID_NAME_AT + shift or at + size > len(section):
            raise ValueError("a build-id record does not fit its section")
        yield parse_build_id(section[at : at + size], shift)
        at += size


def parse_build_id(record: bytes, shift: int = 0) -> BuildIdRecord:
    """Read a build-id record; `shift` moves its fields where the pid is missing."""
    _, misc, _ = abi.RECORD_HEADER.unpack_from(record)
    at = abi.RECORD_HEADER.size + 4 + shift
    raw = record[at : at + abi.BUILD_ID_BYTES]
    if misc & abi.MISC_BUILD_ID_SIZE:
        raw = raw[: record[at + abi.BUILD_ID_BYTES]]
    else:
        raw = without_padding(raw)
    return BuildIdRecord(decode(record[_BUILD_ID_NAME_AT + shift :]), raw.hex())


def without_padding(raw: bytes) -> bytes:
    """A build-id of unstated size: linkers write 8 (fast), 16 (md5, uuid) or 20 bytes (sha1)."""
    for size in (0, 8, 16):
        if not any(raw[size:]):
            return raw[:size]
    return raw
