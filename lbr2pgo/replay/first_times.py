"""When code was first sampled, which no counts keep: a second pass over the samples."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces, rows_by
from lbr2pgo.counting.count import SampleReading
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.replay.recordings import Replayed
from lbr2pgo.sources.base import StackSource
from lbr2pgo.support.addresses import ImageAddresses, image_addresses, image_array
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.tables import same_length, seal


@dataclass(frozen=True, slots=True)
class FirstTimes:
    """Ends of branches and when each was first in a sample; (n,) each, each address once."""

    address: ImageAddresses
    time: U64
    """Nanoseconds."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self)


def first_times(found: Replayed) -> FirstTimes:
    """Of all branches from and to the program; nothing where the inputs hold counts."""
    parts = [FirstTimes(image_array(()), np.empty(0, np.uint64))]
    for source in found.sources:
        if isinstance(source, StackSource):
            reading = SampleReading(source, found.image, found.asked)
            with closing(reading.batches()) as batches:
                parts += [_of_batch(batch, spaces, reading.spaces) for batch, spaces, _ in batches]
    return _earliest(parts)


def _of_batch(batch: BranchStacks, spaces: I64, known: AddressSpaces) -> FirstTimes:
    entries = np.diff(batch.offsets)
    space, time = np.repeat(spaces, entries), np.repeat(batch.time, entries)
    chosen = np.flatnonzero(space >= 0)
    parts = []
    for number, of_space in rows_by(space[chosen]):
        rows = chosen[of_space]
        for end in (batch.from_[rows], batch.to[rows]):
            image, inside = known.to_image(number, end)
            parts.append(FirstTimes(image[inside], time[rows][inside]))
    return _earliest(parts) if parts else FirstTimes(image_array(()), np.empty(0, np.uint64))


def _earliest(parts: Sequence[FirstTimes]) -> FirstTimes:
    address = np.concatenate([part.address for part in parts])
    time = np.concatenate([part.time for part in parts])
    order = np.lexsort((time, address))
    rows = order[begins(address[order])]
    return FirstTimes(image_addresses(address[rows]), time[rows])
