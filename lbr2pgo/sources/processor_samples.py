"""What profilers of processors keep: how often each instruction was interrupted, in which file.

`--no-lbr` takes such samples. Each counts for its leaf. Its address is of the process, or as the
file links it (Parca, the OpenTelemetry agent): that shows where most lie beside their mapping.
Mappings that would hide each other stand for processes of their own, since files of several hosts
and processes may share a profile.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import ANY_PID, Mmap, SpaceEvent, as_linked
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import Addresses, EventInfo, ShownShortly, SourceInfo, SymbolResolver
from lbr2pgo.sources.protobuf import Message, MessageError
from lbr2pgo.support.addresses import (
    SLOT_SIZE,
    FileOffset,
    PlacedAddress,
    RuntimeAddress,
    in_file,
    runtime_addresses,
)
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, readable
from lbr2pgo.support.sums import LIMIT, TooManyError

_GZIP = b"\x1f\x8b"
_HEAD = 256
"""Bytes by which a gzipped file is recognised."""
LARGEST = 1 << 28
"""Bytes of a profile, unpacked."""
MOST = 1 << 20
"""Texts, mappings and locations of a profile."""
_CURE = "Export samples of processors anew, with addresses: not folded stacks, nor a heap's."
_OF_PROCESSORS = (
    "samples", "sample", "cpu", "process_cpu", "on-cpu", "instructions", "cycles", "cpu-cycles",
    "cpu-clock", "task-clock",
)  # fmt: skip
"""Sample types that tell where a processor was, the best first."""
_NANOSECONDS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
SIGN = 1 << 63
"""Numbers from here on are below 0."""
_SHORTEST_PERIOD = 100_000
"""Nanoseconds between samples of a processor, at least."""
_UNPLACED = "samples without an address"
_NEGATIVE = "numbers of samples below 0, as a difference of profiles has them"
_NAMELESS = "samples in files without a name, a build-id and a place, or in none"


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file in memory; its start may be 0."""

    start: int
    limit: int
    offset: int
    path: str
    build_id: str | None

    @property
    def is_named(self) -> bool:
        """Whether anything tells which file it is."""
        return bool(self.path or self.build_id)

    def holds(self, address: int) -> bool:
        """Whether a process had it there: none has anything at 0, nor at a slot of ours."""
        return self.start % SLOT_SIZE > 0 and self.start <= address < self.limit

    def event(self, pid: int, *, is_linked: bool) -> Mmap:
        """The mapping, in a process."""
        path = self.path or "[unknown]"
        if is_linked:
            return as_linked(pid, path, self.build_id)
        return Mmap(
            pid, pid, 0, RuntimeAddress(self.start), self.limit - self.start,
            FileOffset(self.offset), path, self.build_id,
        )  # fmt: skip


Leaf = tuple[int, int]
"""The number of a mapping, and an address; of which 0 is none."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """What is used of a profile."""

    samples: Mapping[Leaf, int]
    """How often each was interrupted."""
    files: Mapping[int, MappedFile]
    measure: str
    negative: int = 0
    """Values that were left out since they are below 0, as in a difference of two profiles."""
    programs: tuple[str, ...] = ()
    """Paths of those files that are known to be programs."""


class ProcessorSamples(ShownShortly):
    """A `StackSource` of samples without stacks; raises InputError where there is no address."""

    def __init__(self, path: Path, form: str, leaves: Leaves) -> None:
        """`form` is what its format is called. Raises TooManyError for too many samples, too."""
        total = sum(leaves.samples.values())
        if total >= LIMIT:
            raise TooManyError(str(path))
        if not total:
            raise InputError("has no samples", where=str(path), cure=_CURE)
        if not any(address for _, address in leaves.samples):
            raise InputError(
                "has names of functions, and no addresses", where=str(path), cure=_CURE
            )
        self._path, self._form, self._leaves = path, form, leaves

    @property
    def info(self) -> SourceInfo:
        """What its mappings and its sample type tell."""
        files = self._leaves.files.values()
        return SourceInfo(
            str(self._path),
            self._form,
            Addresses.RUNTIME if self._events else Addresses.IMAGE,
            # Timers interrupt anywhere behind what took the time.
            (EventInfo(self._leaves.measure, precise_ip=0),),
            {each.path: each.build_id for each in files if each.path and each.build_id},
            advice="samples of a processor tell branches only roughly; a branch recorder "
            "(lbr2pgo record) tells more",
            programs=self._leaves.programs,
        )

    def space_events(self) -> Sequence[SpaceEvent]:
        """A mapping for each file that samples are in; none where no file is known."""
        return self._events

    @cached_property
    def _linked(self) -> set[int]:
        """The files most of whose samples lie beside their mapping.

        A few may well do so in damaged stacks.
        """
        beside: Counter[int] = Counter()
        for (number, address), weight in self._leaves.samples.items():
            file = self._leaves.files.get(number)
            if file is not None and address:
                beside[number] += -weight if file.holds(address) else weight
        return {number for number, surplus in beside.items() if surplus > 0}

    @cached_property
    def _pids(self) -> dict[int, int]:
        """Of each mapping that has samples and can be told from others; none if they all can't.

        Those of processes that lie apart may be of one, and each other is alone.
        """
        files, linked = self._leaves.files, self._linked
        sampled = {number for number, address in self._leaves.samples if address}
        seen = (n for n in files if n in sampled and (files[n].is_named or n not in linked))
        pids = {number: pid for pid, number in enumerate(seen, 1)}
        shared = min((pid for number, pid in pids.items() if number not in linked), default=0)
        end = 0
        for number in sorted(pids.keys() - linked, key=lambda n: (files[n].start, pids[n])):
            if files[number].start >= end:
                pids[number], end = shared, files[number].limit
        return pids

    @cached_property
    def _events(self) -> list[SpaceEvent]:
        files, linked = self._leaves.files, self._linked
        return [files[n].event(pid, is_linked=n in linked) for n, pid in self._pids.items()]

    def _pid(self, number: int) -> int | None:
        """Of samples in a mapping, or in none; None for those of a file that can't be told.

        Without a mapping, an address of a process may still lie in one.
        """
        files = self._leaves.files
        if self._pids and (number in files or self._linked):
            return self._pids.get(number)
        return ANY_PID if number not in files or number == next(iter(files)) else None

    @cached_property
    def _placed(self) -> list[tuple[int, int, int]]:
        """Process, address and weight of each sample whose place is known."""
        linked = self._linked
        found = (
            (self._pid(n), in_file(PlacedAddress(address)) if n in linked else address, weight)
            for (n, address), weight in self._leaves.samples.items()
            if address
        )
        return [(pid, address, weight) for pid, address, weight in found if pid is not None]

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """All at once."""
        table = np.array([(address, weight) for _, address, weight in self._placed], np.uint64)
        table = table.reshape(-1, 2)
        size = len(table)
        yield BranchStacks(
            np.zeros((0, 3), np.uint64),
            np.zeros(size + 1, np.int64),
            np.array([pid for pid, _, _ in self._placed], np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.uint64),
            np.zeros(size, np.int32),
            runtime_addresses(table[:, 0].copy()),
            table[:, 1].copy(),
        )

    def health(self) -> Mapping[str, int]:
        """Samples that have no place."""
        nowhere = sum(w for (_, address), w in self._leaves.samples.items() if not address)
        whole, placed = sum(self._leaves.samples.values()), sum(w for _, _, w in self._placed)
        nameless, negative = whole - nowhere - placed, self._leaves.negative
        return dict(+Counter({_UNPLACED: nowhere, _NAMELESS: nameless, _NEGATIVE: negative}))


def profile_of(path: Path, form: str, parse: Callable[[Message], Leaves]) -> ProcessorSamples:
    """The profile in a file, gzipped or not, whose format is called `form`.

    `parse` raises MessageError for damage, and ValueError for what can't be used: InputError is
    made of both.
    """
    where = str(path)
    try:
        with readable(path):
            if path.stat().st_size > LARGEST:
                raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
            packed = path.read_bytes()
        content = unpacked(packed)
        where += " (unpacked)" if content is not packed else ""
        leaves = parse(Message.of(content))
    except ValueError as error:
        place = f"{where}@{error.at:#x}" if isinstance(error, MessageError) else str(path)
        what = f"is no {form} profile that can be used: {error}"
        raise InputError(what, where=place, cure=_CURE) from None
    return ProcessorSamples(path, form, leaves)


def unpacked(packed: bytes) -> bytes:
    """The content of a file that may be gzipped, in several members too.

    Zeros behind them are padding. Raises MessageError for what is cut off, goes on behind its end,
    or is too large.
    """
    if not packed.startswith(_GZIP):
        return packed
    parts, rest, left = list[bytes](), packed, LARGEST
    while rest.strip(b"\0"):
        at = len(packed) - len(rest)
        if not rest.startswith(_GZIP):
            raise MessageError("something else stands behind its end", at)
        unpacking = zlib.decompressobj(wbits=31)
        try:
            parts.append(unpacking.decompress(rest, left + 1))
        except zlib.error as error:
            raise MessageError(str(error), at) from None
        left -= len(parts[-1])
        if left < 0:
            raise MessageError(f"it is larger than {LARGEST >> 20} MiB, unpacked", at)
        if not unpacking.eof:
            raise MessageError("it is cut off", len(packed))
        rest = unpacking.unused_data
    return b"".join(parts)


def head_of(head: bytes) -> Message:
    """The beginning of a file that may be gzipped; nothing where that is broken."""
    if not head.startswith(_GZIP):
        return Message.of(head)
    try:
        return Message.of(zlib.decompressobj(wbits=31).decompress(head, _HEAD))
    except zlib.error:
        return Message.of(b"")


def column_of(sample_types: Sequence[str]) -> int:
    """Of the sample type that tells best where a processor was; raises ValueError for none."""
    plain = [_event(name) for name in sample_types]
    for wanted in _OF_PROCESSORS:
        if wanted in plain:
            return plain.index(wanted)
    told = ", ".join(name or "no named type" for name in sample_types)
    raise ValueError(f"it tells of {told}, and not of processors")


def is_of_processors(sample_type: str) -> bool:
    """Whether it tells where a processor was."""
    return _event(sample_type) in _OF_PROCESSORS


def _event(sample_type: str) -> str:
    """The event, of perf's, whose samples a type counts; or the type itself.

    How many events they stand for is another type, which ends in `_event`: no number of samples.
    Source: google/perf_data_converter: src/perf_data_converter.cc.

    >>> [_event(name) for name in ("cycles:u_sample", "cycles_event", "cpu")]
    ['cycles', 'cycles_event', 'cpu']
    """
    event = sample_type.removesuffix("_sample")
    return event.partition(":")[0] if event != sample_type else event


def build_id_of(text: str) -> str | None:
    """A build-id, or None for other texts: some profilers put names and hashes there."""
    known = text.lower()
    is_hex = len(known) % 2 == 0 and all(digit in "0123456789abcdef" for digit in known)
    return known if known and is_hex else None


def samples_of(values: Counter[Leaf], unit: str, period: int, period_unit: str) -> Counter[Leaf]:
    """How many samples values come to: times hold a period for each sample.

    Of times whose period is not known (0, or no time), it is what all have in common. Raises
    ValueError where that is none.
    """
    if unit not in _NANOSECONDS:
        return +values
    each = period * _NANOSECONDS.get(period_unit, 0) if 0 < period < SIGN else 0
    times = Counter({leaf: time * _NANOSECONDS[unit] for leaf, time in values.items() if time})
    each = each or math.gcd(*times.values())
    if 0 < each < _SHORTEST_PERIOD:
        raise ValueError(f"it tells {unit}, and not the period of its samples")
    return Counter({leaf: max(1, (time + each // 2) // each) for leaf, time in times.items()})
