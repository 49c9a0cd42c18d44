"""Whether branches stand at the ends of stacks as often as they should.

A branch's share among the newest entries, and among the oldest, should be its share among those in
between. Each stack has one entry at each end, so shares there are those of independent samples, and
by how much they may differ by chance is known. Those in between count for no more than as many:
neighbours in a stack depend on each other.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, build, empty
from lbr2pgo.evidence.stack_ends import STACK_ENDS, StackEnds
from lbr2pgo.model.branch_counts import FROM, sum_by
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import F64, U64, Bools
from lbr2pgo.support.distinct import place_of
from lbr2pgo.support.tables import table

NAME = "stack-ends"
TITLE = "Ends of stacks"

_SURE = 5.0
"""Standard deviations from which a difference is no chance, of thousands of branches neither."""
_LARGE = 0.1
"""Of its share, from which a difference matters."""
_BIASED = 0.02
"""Part of an end's entries that are other branches than they should be, from which it is said."""


@table
class EndShares:
    """Branches in the middle or at an end, ascending by address; columns of equal length."""

    address: PlacedAddresses
    middle: F64
    """Share of the branch among entries between the ends."""
    newest: F64
    oldest: F64
    newest_off: Bools
    """Whether its share there differs by more than chance, and by enough to matter."""
    oldest_off: Bools
    stacks: int

    def bias(self, end: F64) -> float:
        """At least this part of an end's entries are other branches than they should be."""
        if not self.stacks:
            return 0.0
        chance = np.sqrt(2 / np.pi) * _deviation(self.middle, self.stacks).sum() / 2
        return float(max(np.abs(end - self.middle).sum() / 2 - chance, 0.0))


def _deviation(share: F64, stacks: int) -> F64:
    deviation: F64 = np.sqrt(2 * share * (1 - share) / max(stacks, 1))
    return deviation


def end_shares(address: PlacedAddresses, count: U64, ends: StackEnds) -> EndShares:
    """Shares of branches that were counted so often in all, and so often at the ends."""
    (unique,), (total,) = sum_by((address,), (count,))
    place = place_of(unique, ends.address)
    at_ends = [
        np.where(place >= 0, column[place], np.uint64(0)) if len(ends) else np.zeros_like(total)
        for column in (ends.newest, ends.oldest)
    ]
    middle = total - np.minimum(at_ends[0] + at_ends[1], total)
    inner, newest, oldest = (each / max(int(each.sum()), 1) for each in (middle, *at_ends))
    stacks = int(at_ends[0].sum())
    return EndShares(
        address=placed_addresses(unique),
        middle=inner,
        newest=newest,
        oldest=oldest,
        newest_off=_is_off(inner, newest, stacks),
        oldest_off=_is_off(inner, oldest, stacks),
        stacks=stacks,
    )


def _is_off(middle: F64, end: F64, stacks: int) -> Bools:
    expected = np.maximum(middle, 1 / max(stacks, 1))
    difference = np.abs(end - middle)
    is_off: Bools = (difference > _SURE * _deviation(expected, stacks)) & (
        difference > _LARGE * middle
    )
    return is_off


def recorded_shares(evidence: Evidence) -> EndShares | None:
    """Shares of all branches of replayed recordings; None without stacks, or with short ones."""
    found, branches = evidence.found(STACK_ENDS), evidence.flow.branches
    if found is None or not len(found):
        return None
    rows = branches.known & FROM != 0
    return end_shares(branches.from_[rows], branches.count[rows], found)


def position_bias(evidence: Evidence) -> float | None:
    """The bias of the end that has more of it; None without stacks, or with short ones."""
    shares = recorded_shares(evidence)
    return None if shares is None else max(map(shares.bias, (shares.newest, shares.oldest)))


def stack_ends(evidence: Evidence, top: int | None = TOP) -> Table:
    """Hot branches with their shares at the ends of stacks."""
    shares = recorded_shares(evidence)
    columns = [
        Column("share", "share", Unit.SHARE, FIGURE),
        Column("newest", "of newest", Unit.SHARE, FIGURE),
        Column("oldest", "of oldest", Unit.SHARE, FIGURE),
        Column("biased", "biased", Unit.TEXT),
    ]
    if shares is None:
        return empty(NAME, TITLE, columns, "No stacks were recorded, or only short ones.")
    chosen = np.flatnonzero(evidence.concerns(shares.address))
    chosen = chosen[np.argsort(-shares.middle[chosen], kind="stable")][:top]
    words = [
        " ".join(name for name, off in (("newest", a), ("oldest", b)) if off)
        for a, b in zip(shares.newest_off[chosen], shares.oldest_off[chosen], strict=True)
    ]
    numbers = (shares.middle, shares.newest, shares.oldest)
    values = (*(column[chosen].tolist() for column in numbers), words)
    places = evidence.names.of(shares.address[chosen], np.ones(len(chosen), np.bool_))
    return build(
        NAME,
        TITLE,
        [
            *zip(columns, values, strict=True),
            *places.columns("from_", "from "),
        ],
        notes=bias_notes(shares),
        found=len(shares.address),
    )


def bias_notes(shares: EndShares) -> tuple[str, ...]:
    """What is wrong with the ends, and what to do."""
    return tuple(
        f"Of the {name} entries at least {bias:.1%} are other branches than they should be: "
        f"--drop-{name} 1 leaves them out, and --correct-bias weighs stacks, too, where it must."
        for name, end in (("newest", shares.newest), ("oldest", shares.oldest))
        for bias in (shares.bias(end),)
        if bias > _BIASED
    )
