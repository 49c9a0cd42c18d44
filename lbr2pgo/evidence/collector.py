"""What collectors have in common: they look at the samples again, for what counts don't tell.

A collector sees the samples of one source, batch by batch, when counting and replay have shown
which code ran. To add one, write a module with its table, its collector and its `Finding`; an
analysis that needs the finding (`analyses.registry`) has the table in its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.evidence.sample_runs import KnownRuns, SampleRuns
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.walk import Stacks
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.addresses import RuntimeAddresses
from lbr2pgo.support.arrays import I64, U8

T = TypeVar("T")
Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True)
class Samples:
    """A batch of samples, as `SampleReading.batches` gives it."""

    batch: BranchStacks
    spaces: I64
    """(n,): of each sample, negative where it is not to be counted."""
    kinds: U8
    """(n,): `StackKind` of each."""
    known: KnownRuns
    """What is known of their fall-throughs, and in which address spaces they are."""

    @cached_property
    def stacks(self) -> Stacks:
        """As the loops want it."""
        return stacks_of(self.batch, self.spaces, self.kinds, self.known.spaces.bounds)

    @cached_property
    def runs(self) -> SampleRuns:
        """The fall-throughs of each sample, laid over the code."""
        return self.known.of_samples(self.batch, self.stacks)


def no_files(addresses: RuntimeAddresses) -> I64:
    """No file is known of any address."""
    return np.zeros(len(addresses), np.int64)


@dataclass(frozen=True, slots=True)
class Pass:
    """A second pass over the samples of one source."""

    program: Program
    flow: Flow
    spaces: AddressSpaces
    events: Sequence[EventInfo]
    outside: Callable[[RuntimeAddresses], I64]
    """Which file (n,) run-time addresses outside the program are of, by their number there."""
    files: MappedFiles
    """All files of the source."""
    has_times: bool
    """Whether samples say when they were taken."""
    runs: KnownRuns
    """Numbers of its samples' fall-throughs."""


class Collector(Protocol[Result]):
    """Collects one finding."""

    def add(self, samples: Samples) -> None:
        """Look at a batch."""

    def merge(self, other: Self) -> None:
        """Take over what another one saw in other samples of the program, in any order."""

    def result(self) -> Result:
        """What was seen."""


@runtime_checkable
class ByInstruction(Protocol):
    """A finding with a row for each instruction of a flow."""

    def of_instructions(self, rows: I64) -> Self:
        """The same of another flow, whose instructions have these rows here."""


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """Something that the samples tell and counts don't; those of one name are equal."""

    name: str
    start: Callable[[Pass], Collector[T]] = field(compare=False)
    """Make a collector for a pass."""
