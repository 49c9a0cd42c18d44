"""The header of a perf.data file: who recorded what, on which machine.

Layouts: perf: tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/header.c
(v6.1), functions `write_*`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS

USER_BRANCHES = 1 << BRANCH_FILTER_BITS["user"] | 1 << BRANCH_FILTER_BITS["any"]


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event of a recording, as `struct perf_event_attr` describes it."""

    name: str
    period: int
    """Events per sample; samples per second if `is_frequency`."""
    branch_sample_type: int = USER_BRANCHES
    """PERF_SAMPLE_BRANCH_* bits."""
    type: int = abi.TYPE_RAW
    config: int = 0
    is_frequency: bool = False
    user_only: bool = True

    @property
    def is_call_stack(self) -> bool:
        """Whether the entries are calls that have not returned yet."""
        return bool(self.branch_sample_type >> BRANCH_FILTER_BITS["call_stack"] & 1)


@dataclass(frozen=True, slots=True)
class RecordingFacts:
    """What the file's header says of the recording; None is left out."""

    hostname: str | None = None
    os_release: str | None = None
    version: str | None = None
    """Of the recorder."""
    machine: str | None = None
    """As `uname -m` says it."""
    cpu_description: str | None = None
    cpu_id: str | None = None
    cpus: int | None = None
    total_memory: int | None = None
    """Bytes."""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildId:
    """The build-id of one mapped file."""

    hexadecimal: str
    in_kernel: bool = False


def encode_attr(event: RecordedEvent, sample_type: int) -> bytes:
    """`struct perf_event_attr` in the 128 bytes that perf 6.1 knows."""
    flags = (
        abi.ATTR_DISABLED | abi.ATTR_INHERIT | abi.ATTR_MMAP | abi.ATTR_COMM | abi.ATTR_TASK
        | abi.ATTR_SAMPLE_ID_ALL | abi.ATTR_EXCLUDE_GUEST | abi.ATTR_MMAP2 | abi.ATTR_COMM_EXEC
    )  # fmt: skip
    if event.is_frequency:
        flags |= abi.ATTR_FREQ
    if event.user_only:
        flags |= abi.ATTR_EXCLUDE_KERNEL | abi.ATTR_EXCLUDE_HV
    known = abi.ATTR.pack(
        event.type, abi.ATTR_SIZE, event.config, event.period, sample_type, 0, flags,
        0, 0, 0, 0, event.branch_sample_type, 0,
    )  # fmt: skip
    return known.ljust(abi.ATTR_SIZE, b"\0")


def encode_features(
    facts: RecordingFacts,
    attrs: Sequence[tuple[RecordedEvent, bytes, int]],
    build_ids: Mapping[str, BuildId],
    times: tuple[int, int] | None,
) -> dict[int, bytes]:
    """Contents of the feature sections, by feature number.

    `attrs` holds each event with its encoded attr and its sample id, `times` the times of the
    first and the last sample.
    """
    features = _strings_of(facts)
    if facts.cpus is not None:
        features[abi.FEATURE_NRCPUS] = struct.pack("<II", facts.cpus, facts.cpus)
    if facts.total_memory is not None:
        features[abi.FEATURE_TOTAL_MEM] = struct.pack("<Q", facts.total_memory // 1024)
    if facts.command:
        words = [_string(word) for word in facts.command]
        features[abi.FEATURE_CMDLINE] = struct.pack("<I", len(words)) + b"".join(words)
    if build_ids:
        records = [_build_id_record(path, build_id) for path, build_id in build_ids.items()]
        features[abi.FEATURE_BUILD_ID] = b"".join(records)
    if times is not None:
        features[abi.FEATURE_SAMPLE_TIME] = struct.pack("<QQ", *times)
    features[abi.FEATURE_EVENT_DESC] = _event_descriptions(attrs)
    if not all(event.is_call_stack for event, _, _ in attrs):
        features[abi.FEATURE_BRANCH_STACK] = b""  # with it, perf report shows branches, not calls
    return dict(sorted(features.items()))


def _strings_of(facts: RecordingFacts) -> dict[int, bytes]:
    texts = {
        abi.FEATURE_HOSTNAME: facts.hostname,
        abi.FEATURE_OSRELEASE: facts.os_release,
        abi.FEATURE_VERSION: facts.version,
        abi.FEATURE_ARCH: facts.machine,
        abi.FEATURE_CPUDESC: facts.cpu_description,
        abi.FEATURE_CPUID: facts.cpu_id,
    }
    return {feature: _string(text) for feature, text in texts.items() if text is not None}


def _event_descriptions(attrs: Sequence[tuple[RecordedEvent, bytes, int]]) -> bytes:
    parts = [struct.pack("<II", len(attrs), abi.ATTR_SIZE)]
    for event, attr, sample_id in attrs:
        parts += [attr, struct.pack("<I", 1), _string(event.name), struct.pack("<Q", sample_id)]
    return b"".join(parts)


def _build_id_record(path: str, build_id: BuildId) -> bytes:
    raw = bytes.fromhex(build_id.hexadecimal)[: abi.BUILD_ID_BYTES]
    mode = abi.MISC_KERNEL if build_id.in_kernel else abi.MISC_USER
    pid = -1 if build_id.in_kernel else 0
    name = _padded(path)
    body = struct.pack("<i20sB3x", pid, raw, len(raw)) + name
    size = abi.RECORD_HEADER.size + len(body)
    return abi.RECORD_HEADER.pack(0, mode | abi.MISC_BUILD_ID_SIZE, size) + body


def _string(text: str) -> bytes:
    padded = _padded(text)
    return struct.pack("<I", len(padded)) + padded


def _padded(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape") + b"\0"
    return raw.ljust(abi.align(len(raw), abi.NAME_ALIGN), b"\0")
