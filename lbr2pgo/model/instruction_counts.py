"""`InstructionCounts`: how often each instruction of one image was sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.sums import exact_sum, refuse_too_many
from lbr2pgo.support.tables import Tabular, ascending, table


@table
class InstructionCounts(Tabular):
    """Samples by where they interrupted the program; placed addresses, ascending."""

    address: PlacedAddresses
    count: U64
    build_id: str | None = None
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Steps and losses on the way here (see `waterfall`)."""

    def __post_init__(self) -> None:
        ascending(self, "address")

    @property
    def total(self) -> int:
        """How many samples there are."""
        return exact_sum(self.count)


def aggregate(
    address: PlacedAddresses,
    count: U64,
    *,
    build_id: str | None = None,
    tallies: Mapping[str, int] | None = None,
) -> InstructionCounts:
    """Build `InstructionCounts` from rows in any order; equal addresses add up.

    Raises TooManyError where counts add up to 2**63.
    """
    refuse_too_many(count)
    rows = count > 0
    (address_,), (count,) = sum_by((address[rows],), (count[rows],))
    return InstructionCounts(placed_addresses(address_), count, build_id, dict(tallies or {}))


def merge(counts: Sequence[InstructionCounts]) -> InstructionCounts:
    """Add up counts of one image; ValueError if they name different builds."""
    build_ids = {c.build_id for c in counts if c.build_id}
    if len(build_ids) > 1:
        raise ValueError(f"counts of different builds: {', '.join(sorted(build_ids))}")
    return aggregate(
        np.concatenate([c.address for c in counts]),
        np.concatenate([c.count for c in counts]),
        build_id=next(iter(build_ids), None),
        tallies=waterfall.merge(*(c.tallies for c in counts)),
    )
