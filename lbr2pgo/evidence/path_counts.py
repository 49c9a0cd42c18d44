"""How often samples went along chains of blocks.

A stack shows the blocks of a function in the order in which they ran. Behind a block of a chain
either the chain's next block runs next in that function, or another one does, or the stack ends
before that is known. What is called in between plays no part; if the function calls itself, how the
outer call goes on is not known. Of `known` times at a block, execution `went_on` along the chain;
what is not known is in neither, so the product over blocks is the share of the whole way (the
product-limit estimator: E. L. Kaplan, P. Meier, JASA 53, 1958).
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from lbr2pgo.evidence._chain_paths import ChainFollower
from lbr2pgo.evidence.collector import Finding, Samples
from lbr2pgo.evidence.sample_runs import RunRows
from lbr2pgo.support.arrays import I32, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import seal, taken

WAYS = 32
"""Blocks that a path is remembered back; behind so many, all paths are one."""


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Blocks of functions and their chains; (m,) by the number of an instruction in a flow.

    (b,): by the order of blocks in it.
    """

    functions: int
    slots: int
    """More than the largest slot, and more than 0."""
    before: I32
    """(m + 1,): how many blocks start before each instruction."""
    owner: I64
    """(b,): function of each block."""
    slot: I32
    """(m,): -1 outside of chains. Neighbours in a chain, and only they, have neighbouring ones."""
    is_entry: Bools
    """(b,): blocks in which a function is entered, and to which none of its own leads."""

    def __post_init__(self) -> None:
        seal(self)


_NO_PLAN = ChainPlan(
    0, 1, np.zeros(1, np.int32), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_)
)


@dataclass(frozen=True)
class PathCounts:
    """How execution went on, by slot and by how many blocks of the chain ran just before."""

    slot: I32
    """(m,): the plan's; where it is -1, nothing is known."""
    known: U64
    """(slots, WAYS): how often it is known which block ran next."""
    went_on: U64
    """(slots, WAYS): how often that was the chain's."""

    def __post_init__(self) -> None:
        seal(self)

    @cached_property
    def _from(self) -> tuple[U64, U64]:
        """Both, of paths that came at least so far along the chain."""
        known, went_on = (
            each[:, ::-1].cumsum(axis=1)[:, ::-1] for each in (self.known, self.went_on)
        )
        return known, went_on

    def of_instructions(self, rows: I64) -> PathCounts:
        """See `ByInstruction`."""
        return taken(self, rows, "slot")

    def along(self, rows: I64) -> tuple[U64, U64]:
        """(n - 1,) each: known and went_on of paths from the first one of n blocks of a chain.

        Nothing is known from the first block on that is followed by another one than planned.
        """
        slots, following = self.slot[rows[:-1]], self.slot[rows[1:]]
        ways = np.minimum(np.arange(len(slots)), WAYS - 1)
        is_planned = np.logical_and.accumulate((slots >= 0) & (following == slots + 1))
        known, went_on = (np.where(is_planned, each[slots, ways], 0) for each in self._from)
        return known, went_on


class PathCollector:
    """Counts along a plan; memory is the plan's, however many samples there are."""

    def __init__(self, plan: ChainPlan) -> None:
        self._slot, self._before = plan.slot, plan.before
        self._known, self._went_on = (np.zeros((plan.slots, WAYS), np.uint64) for _ in range(2))
        slot = plan.slot[np.diff(plan.before) > 0]
        blocks = np.column_stack((plan.owner, slot, plan.is_entry)).astype(np.int32)
        self._follower = ChainFollower(blocks, plan.functions, self._known, self._went_on)
        self._blocks = RunRows(2, partial(_blocks_of, plan.before))

    def add(self, samples: Samples) -> None:
        """Follow a batch."""
        runs, led_to = samples.runs, samples.runs.led_to
        block = self._before[led_to]
        is_known = (led_to >= 0) & (self._before[led_to + 1] > block)
        block[~is_known] = -1
        self._follower.follow(
            self._blocks.of(runs.places), runs.run, runs.sample, block, runs.weight
        )

    def merge(self, other: PathCollector) -> None:
        """Add what another one counted along the same plan."""
        self._known += other._known
        self._went_on += other._went_on

    def result(self) -> PathCounts:
        """What was counted."""
        return PathCounts(self._slot, self._known, self._went_on)


def _blocks_of(before: I32, first: I64, last: I64) -> I32:
    """(r, 2): the first block that starts in each run, and the one behind the last."""
    return np.column_stack((before[first], before[last + 1]))


def paths_along(plan: ChainPlan, finding: Finding[PathCounts]) -> Finding[PathCounts]:
    """`PATHS` or `CROSSING`, along a plan of the program at hand."""
    return Finding(finding.name, lambda _: PathCollector(plan))


PATHS = Finding("paths", lambda _: PathCollector(_NO_PLAN))
CROSSING = Finding("paths across calls", lambda _: PathCollector(_NO_PLAN))
