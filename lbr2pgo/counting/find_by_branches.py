"""Where a program was loaded, told by the branches that were recorded in it.

A recorded branch starts at a branch instruction and, if that is direct, goes where it says. So in
the right place all branches in the program's code are its own, and in a wrong one hardly any.

A program is loaded at a multiple of the page size, which changes neither how far a direct branch
goes nor where it stands in its page. These two, of a recorded branch, name few branches of the
program, and each of them a bias: the one that most distinct branches name is the right one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.code_addresses import are_code
from lbr2pgo.support.addresses import (
    ImageAddresses,
    Numbers,
    PlacedAddresses,
    RuntimeAddresses,
    image_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import table, taken

_PAGE_BITS, _PAGE_MASK = np.uint64(12), np.uint64(0xFFF)
_MOST_PLACES = 32
"""A branch that may be more of the program's tells too little."""
_FEWEST_VOTES = 2
_SHARE = 0.9
"""Of branches in the program's code are its own. Others start where an exception was taken."""
_OTHER_SHARE = 0.1
"""Of another place's votes in the best one's, from which on the recording shows both."""
_REACH = np.uint64(15)
"""A compare and the branch behind it may be recorded as one, at the compare: `replay.fusion`."""


@table
class CodeBranches:
    """The branch instructions of a program, ordered by address."""

    address: ImageAddresses
    target: ImageAddresses
    """Of direct branches."""
    has_target: Bools

    def own(self, from_: PlacedAddresses, to: PlacedAddresses) -> Bools:
        """Whether recorded branches, by placed addresses (n,), are the program's."""
        if not len(self.address):
            return np.zeros(len(from_), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.address, from_), len(self.address) - 1)
        ahead = self.address[at] - from_
        is_indirect = ~self.has_target[at] & (ahead == 0)
        is_direct = self.has_target[at] & (ahead <= _REACH) & (self.target[at] == to)
        own: Bools = is_direct | is_indirect
        return own


@dataclass(frozen=True, slots=True)
class Fit:
    """How many of the recorded branches start in the program's code, and how many are its own."""

    branches: int
    own: int

    @property
    def is_good(self) -> bool:
        """Whether nearly all of them are."""
        return self.own > 0 and self.own >= _SHARE * self.branches

    def __str__(self) -> str:
        share = 100 * self.own / self.branches
        return f"{share:.1f} % of {counted(self.branches, 'branch')} there are its own"


@dataclass(frozen=True, slots=True)
class Load:
    """Where a program was loaded: run-time addresses are image addresses plus `bias`."""

    bias: int
    fit: Fit


@table
class EdgesSeen:
    """Distinct branches, by run-time addresses (n,), and how often each was recorded."""

    from_: RuntimeAddresses
    to: RuntimeAddresses
    count: I64

    def take(self, rows: Bools) -> EdgesSeen:
        """Some of them."""
        return taken(self, rows)


def edges_of(stacks: Iterable[BranchStacks]) -> EdgesSeen:
    """The distinct branches of some samples."""
    pairs = [np.zeros((0, 2), np.uint64), *(batch.entries[:, :2] for batch in stacks)]
    unique, count = np.unique(np.concatenate(pairs), axis=0, return_counts=True)
    from_, to = runtime_addresses(unique).T
    return EdgesSeen(from_, to, count)


def find_load(edges: EdgesSeen, layout: ImageLayout, branches: CodeBranches) -> Load | None:
    """Where the program was loaded, if it was in one place only and the branches tell it."""
    best = _best(edges, layout, branches)
    if best is None:
        return None
    elsewhere = ~_inside(edges, best.bias, layout)
    other = _best(edges.take(elsewhere), layout, branches)
    is_alone = other is None or other.fit.own < _OTHER_SHARE * best.fit.own
    return best if is_alone else None


def _best(edges: EdgesSeen, layout: ImageLayout, branches: CodeBranches) -> Load | None:
    biases, votes = np.unique(_biases(edges, branches), return_counts=True)
    if not len(votes) or votes.max() < _FEWEST_VOTES:
        return None
    bias = int(biases[np.argmax(votes)].astype(np.int64))
    here = edges.take(_inside(edges, bias, layout))
    own = branches.own(_in_image(here.from_, bias), _in_image(here.to, bias))
    load = Load(bias, Fit(int(here.count.sum()), int(here.count[own].sum())))
    return load if load.fit.is_good else None


def _biases(edges: EdgesSeen, branches: CodeBranches) -> U64:
    """The biases that recorded branches name, as often as they do."""
    direct = branches.has_target
    address, keys = (
        branches.address[direct],
        _keys(branches.address[direct], branches.target[direct]),
    )
    order = np.argsort(keys)
    wanted = _keys(edges.from_, edges.to)
    first = np.searchsorted(keys, wanted, "left", order)
    past = np.searchsorted(keys, wanted, "right", order)
    past = np.where(past - first <= _MOST_PLACES, past, first)
    biases: U64 = np.repeat(edges.from_, past - first) - address[order[numbers_in(first, past)]]
    return biases


def _keys(from_: Numbers, to: Numbers) -> U64:
    """What a bias leaves as it is: how far branches go, and from where in their page."""
    keys: U64 = (to - from_) << _PAGE_BITS | from_ & _PAGE_MASK
    return keys


def _in_image(addresses: RuntimeAddresses, bias: int) -> ImageAddresses:
    return image_addresses(addresses - np.uint64(bias % 2**64))


def _inside(edges: EdgesSeen, bias: int, layout: ImageLayout) -> Bools:
    return are_code(layout, _in_image(edges.from_, bias))


def fit_of(stacks: Iterable[BranchStacks], spaces: AddressSpaces, branches: CodeBranches) -> Fit:
    """How well the branches of some samples fit a program that their processes had mapped."""
    total = own = 0
    for batch in stacks:
        found = spaces.spaces_of(batch.pid, batch.time)
        of_entry = np.repeat(found, np.diff(batch.offsets))
        from_, inside = spaces.to_image(of_entry, batch.from_)
        to, _ = spaces.to_image(of_entry, batch.to)
        total += int(np.count_nonzero(inside))
        own += int(np.count_nonzero(branches.own(from_[inside], to[inside])))
    return Fit(total, own)
