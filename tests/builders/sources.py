"""A source of stacks in memory, for tests of what comes after reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Addresses, EventInfo, SourceInfo, SymbolResolver

Entry = tuple[int, int] | tuple[int, int, int]

# File offsets, image addresses and run-time addresses all differ.
LAYOUT = ImageLayout(
    "/bin/prog",
    "aa" * 20,
    "x86-64",
    True,
    (
        Segment(0x0, 0x0, 0x800, 0x800, False),
        Segment(0x2800, 0x800, 0x1000, 0x1000, True),
        Segment(0x5800, 0x1800, 0x400, 0x900, False),
    ),
)
CODE, CODE_END = 0x2800, 0x3800
BASE = 0x7F0000000000
"""Where the tests usually load the image."""


@dataclass(frozen=True)
class Sample:
    """One sample; entries without flags are predicted branches."""

    stack: Sequence[Entry] = ()
    pid: int = 10
    time: int = 100
    event: int = -1
    weight: int = 1
    ip: int = 0
    chain: Sequence[int] = ()
    """The call stack, innermost frame first."""


def batch_of(samples: Sequence[Sample]) -> BranchStacks:
    """One batch of samples."""
    rows = [(*entry, 2)[:3] for sample in samples for entry in sample.stack]

    def column(name: str, dtype: type[np.generic]) -> np.ndarray:
        return np.array([getattr(sample, name) for sample in samples], dtype=dtype)

    return BranchStacks(
        entries=np.array(rows, dtype=np.uint64).reshape(-1, 3),
        offsets=np.cumsum([0, *(len(sample.stack) for sample in samples)], dtype=np.int64),
        pid=column("pid", np.int32),
        tid=column("pid", np.int32),
        time=column("time", np.uint64),
        event=column("event", np.int32),
        ip=column("ip", np.uint64),
        weight=column("weight", np.uint64),
        chains=chains_of(samples) if any(sample.chain for sample in samples) else None,
    )


def chains_of(samples: Sequence[Sample]) -> CallChains:
    """Their call stacks."""
    frames = [frame for sample in samples for frame in sample.chain]
    offsets = np.cumsum([0, *(len(sample.chain) for sample in samples)], dtype=np.int64)
    return CallChains(np.array(frames, np.uint64), offsets)


@dataclass
class MemorySource:
    """A `StackSource` of given samples."""

    samples: Sequence[Sample]
    space: Sequence[SpaceEvent] = ()
    events: tuple[EventInfo, ...] = ()
    build_ids: Mapping[str, str] = field(default_factory=dict)
    addresses: Addresses = Addresses.RUNTIME
    batch_size: int = 1000

    @property
    def info(self) -> SourceInfo:
        return SourceInfo(
            path="memory", format="test", addresses=self.addresses, events=self.events,
            build_ids=self.build_ids, has_call_chains=any(each.chain for each in self.samples),
        )  # fmt: skip

    def space_events(self) -> Sequence[SpaceEvent]:
        return self.space

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        for first in range(0, len(self.samples), self.batch_size):
            yield batch_of(self.samples[first : first + self.batch_size])

    def health(self) -> Mapping[str, int]:
        return {}


def mapping(
    pid: int = 10, base: int = BASE, *, time: int = 0, layout: ImageLayout = LAYOUT,
    **changes: object,
) -> Mmap:  # fmt: skip
    """The mapping of an image's first executable segment, as a loader makes it: whole pages."""
    code = next(s for s in layout.segments if s.executable)
    offset = code.file_offset & ~0xFFF
    slack = code.file_offset - offset
    length = slack + code.file_size + 0xFFF & ~0xFFF
    fields = {
        "pid": pid, "tid": pid, "time": time, "start": base + code.address - slack,
        "length": length, "file_offset": offset, "path": layout.path, "build_id": layout.build_id,
    }  # fmt: skip
    return Mmap(**{**fields, **changes})  # type: ignore[arg-type]
