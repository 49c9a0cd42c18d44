"""Call stacks that hold offsets in files: some versions of perf, such as 6.1, print them so.

They print the addresses of the branch stack as they are, but those of the call stack as their maps
have them (perf: tools/perf/util/evsel_fprintf.c, sample__fprintf_callchain, v6.1). Which files they
are of is not printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import CallChains
from lbr2pgo.support.addresses import are_of_kernel
from lbr2pgo.support.arrays import U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import last_at_or_below

_FEWEST = 1000
"""Frames that can tell: code that a program makes itself is in no file either."""
_FEW = 0.01
"""The share of frames in mappings is far above this where they are addresses."""


@dataclass(frozen=True, slots=True)
class MappedCode:
    """Addresses that any process has mapped; (k,) in order of their starts."""

    start: U64
    reach: U64
    """The farthest end of all that start up to there."""

    @classmethod
    def of(cls, events: Iterable[SpaceEvent]) -> Self:
        """What these events map."""
        maps = [(e.start, e.end) for e in events if isinstance(e, Mmap)]
        pairs = np.array(sorted(maps), np.uint64).reshape(-1, 2)
        return cls(pairs[:, 0].copy(), np.maximum.accumulate(pairs[:, 1]))

    def holds(self, addresses: U64) -> Bools:
        """(n,): whether each lies in a mapping."""
        at = last_at_or_below(self.start, addresses)
        return (at >= 0) & (addresses < self.reach[at])


def are_offsets(chains: CallChains, mapped: MappedCode) -> bool:
    """Whether call stacks can't be addresses."""
    user = chains.frames[~are_of_kernel(chains.frames)]
    if len(mapped.start) == 0 or len(user) < _FEWEST:
        return False
    return int(mapped.holds(user).sum()) < _FEW * len(user)
