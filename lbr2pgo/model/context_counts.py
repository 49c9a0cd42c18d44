"""`ContextCounts`: how often each fall-through and each branch was seen, by who called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.tables import Tabular, table


@dataclass(frozen=True, slots=True)
class Callers(Tabular):
    """Call stacks as a trie; (n,) each, parents before children. Node 0 is the root."""

    parent: I64
    """-1 for the root."""
    call: PlacedAddresses
    """Image address of the call instruction; 0 for the root, above which nothing is known."""

    def __post_init__(self) -> None:
        number = np.arange(len(self.parent))
        if not len(number) or self.parent[0] != -1 or (self.parent[1:] < 0).any():
            raise ValueError("only node 0 has no parent")
        if (self.parent >= number).any():
            raise ValueError("parents must come before their children")


@table
class ContextRuns:
    """Fall-through ranges in a context, closed on the starts of their first and last instruction.

    Columns of equal length; rows may be alike.
    """

    node: I64
    """The callers of the function in which it ran (inlined functions don't count)."""
    start: PlacedAddresses
    end: PlacedAddresses
    count: U64


@table
class ContextBranches:
    """Taken branches that reach the image; columns of equal length, whose rows may be alike."""

    node: I64
    """The callers of the function in which the branch is; 0 for those from outside."""
    from_: PlacedAddresses
    """0 for those from outside."""
    has_source: Bools
    to: PlacedAddresses
    count: U64


@dataclass(frozen=True, slots=True)
class ContextCounts:
    """Counts of one image by calling context, in placed addresses."""

    callers: Callers
    runs: ContextRuns
    branches: ContextBranches
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Steps and losses on the way here (see `waterfall`)."""
