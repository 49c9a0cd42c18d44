"""What `perf script` text says besides samples: record lines and the header's comments.

perf: tools/perf/util/event.c perf_event__fprintf_mmap2 and its neighbours, util/header.c
print_… (v4.3 to v6.14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress
from lbr2pgo.support.dataclass import dataclass

# Numbers have no more digits than their column holds; seconds, than 64 bits of nanoseconds.
_ID, _HEX = r"(-?\d{1,10})", r"(?:0x)?([0-9a-f]{1,16})"
_RECORD = re.compile(
    rb"(?:(?<!\d)([0-8]?\d{1,9})\.(\d{1,9}):\s+)?\bPERF_RECORD_(\w+)(.*)", re.DOTALL
)
_MMAP = re.compile(
    rf" {_ID}/{_ID}: \[{_HEX}\({_HEX}\) @ {_HEX}([^\]]*)\]: (\S+) (.*)".encode(), re.DOTALL
)
_BUILD_ID = re.compile(rb" <([0-9a-f]+)>")
_COMM = re.compile(rf"( exec)?: (.*):{_ID}/{_ID}".encode(), re.DOTALL)
_TASK = re.compile(rf"\({_ID}:{_ID}\):\({_ID}:{_ID}\)".encode())
_LOST = re.compile(rb" lost (\d{1,19})\b")

_FACT = re.compile(r"# ([a-z]+(?: [a-z]+)*+)\s*+: (.+)")
_EVENT = re.compile(r"# event : name = ([^,]+(?:, raw [^,]+)?),.*")
_FILTER = re.compile(r"branch_sample_type = ([A-Z0-9_|]+)")
_FACTS = {
    "hostname": "host", "os release": "kernel", "perf version": "perf",
    "cpudesc": "cpu", "cpuid": "cpuid", "cmdline": "command",
}  # fmt: skip
# Names that perf prints otherwise than it takes them: tools/perf/util/perf_event_attr_fprintf.c.
_FILTER_NAMES = {
    "any_return": "any_ret", "ind_jump": "ind_jmp", "type_save": "save_type",
    "priv_save": "priv", "counters": "counter",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One `PERF_RECORD_…` line: what it changes, if anything, and its time, if it has one."""

    event: SpaceEvent | None
    time: int | None
    lost: int = 0
    """Samples that the kernel says it dropped."""
    is_damaged: bool = False


def _mmap(rest: bytes, time: int) -> Mmap | None:
    match = _MMAP.fullmatch(rest)
    if match is None:
        return None
    pid, tid, start, length, offset, identity, protection, path = match.groups()
    build_id = _BUILD_ID.match(identity)
    return Mmap(
        pid=int(pid),
        tid=int(tid),
        time=time,
        start=RuntimeAddress(int(start, 16)),
        length=int(length, 16),
        file_offset=FileOffset(int(offset, 16)),
        path=path.decode("utf-8", "surrogateescape"),
        build_id=build_id[1].decode() if build_id else None,
        # Mappings that perf made up, the kernel's for instance, may state no protection at all.
        executable=b"x" in protection or protection.startswith(b"---"),
    )


def _comm(rest: bytes, time: int) -> Comm | None:
    match = _COMM.fullmatch(rest)
    if match is None:
        return None
    is_exec, name, pid, tid = match.groups()
    text = name.decode("utf-8", "surrogateescape")
    return Comm(int(pid), int(tid), time, text, is_exec is not None)


def _fork(rest: bytes, time: int) -> Fork | None:
    match = _TASK.fullmatch(rest)
    if match is None:
        return None
    pid, tid, parent_pid, _ = map(int, match.groups())
    return Fork(pid, parent_pid, tid, time)


def _exit(rest: bytes, time: int) -> Exit | None:
    match = _TASK.fullmatch(rest)
    return Exit(int(match[1]), int(match[2]), time) if match else None


_PARSERS: dict[bytes, Callable[[bytes, int], SpaceEvent | None]] = {
    b"MMAP": _mmap,
    b"MMAP2": _mmap,
    b"COMM": _comm,
    b"FORK": _fork,
    b"EXIT": _exit,
}


def read_record(line: bytes, place: int, *, is_timed: bool = True) -> RecordLine:
    """Read a record line; the event's time is the line's own, or `place` (if not `is_timed`)."""
    match = _RECORD.search(line)
    if match is None:
        return RecordLine(None, None, is_damaged=True)
    seconds, fraction, kind, rest = match.groups()
    time = int(seconds) * 10**9 + int(fraction.ljust(9, b"0")) if seconds else None
    rest = rest.rstrip(b"\r\n ")
    if kind in (b"LOST", b"LOST_SAMPLES"):
        lost = _LOST.match(rest)
        return RecordLine(None, time, lost=int(lost[1]) if lost else 0)
    parse = _PARSERS.get(kind)
    if parse is None:
        return RecordLine(None, time)
    event = parse(rest, time if time is not None and is_timed else place)
    return RecordLine(event, time, is_damaged=event is None)


def _filter_bits(text: str) -> int:
    names = [name.lower() for name in text.split("|")]
    known = [_FILTER_NAMES.get(name, name) for name in names]
    return sum(1 << BRANCH_FILTER_BITS[name] for name in known if name in BRANCH_FILTER_BITS)


@dataclass(frozen=True, slots=True)
class Comments:
    """What the comment lines of `perf script --header` tell."""

    machine: str | None
    facts: Mapping[str, str]
    filters: Mapping[str, int]
    """`branch_sample_type` by event name."""

    def event(self, name: str) -> EventInfo:
        """The event of this name, with its filter where the comments tell it."""
        return EventInfo(name, self.filters.get(name))


def read_comments(head: bytes) -> Comments:
    """Read the comment lines in the head of a file."""
    told, filters = {}, {}
    for line in head.decode("utf-8", "replace").splitlines():
        event, kept = _EVENT.match(line), _FILTER.search(line)
        if event and kept:
            filters[event[1]] = _filter_bits(kept[1])
        elif fact := _FACT.match(line):
            told[fact[1]] = fact[2].strip()
    facts = {name: told[key] for key, name in _FACTS.items() if key in told}
    return Comments(told.get("arch"), facts, filters)
