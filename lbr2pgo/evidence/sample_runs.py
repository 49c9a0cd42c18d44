"""The fall-throughs of single samples, laid over the code: what stands together in one stack."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence._runs import list_runs
from lbr2pgo.model.branch_counts import Runs
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.walk import Stacks
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.fusion import next_branches
from lbr2pgo.replay.replay import judge
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import same_length, seal


@dataclass(frozen=True, slots=True)
class SampleRuns:
    """Runs of a batch of n samples; k rows, samples ascending, newest run of a sample first."""

    first: I64
    """(k,): number of the run's first instruction in the flow."""
    last: I64
    """(k,): of its last one, a branch."""
    valid: Bools
    """(k,): whether it may have run so; first and last mean nothing where it may not."""
    prediction: U8
    """(k,): flags MISPREDICTED and PREDICTED of its branch; 0 where neither is known."""
    sample: I64
    """(k,)"""
    led_to: I64
    """(n,): the instruction that each sample's newest branch led to, -1 where none is known."""
    weight: U64
    """(n,): of each sample."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "first", "last", "valid", "prediction", "sample")
        same_length(self, "led_to", "weight")


def runs_of(
    batch: BranchStacks,
    spaces: I64,
    stacks: Stacks,
    address_spaces: AddressSpaces,
    code: InstructionTable,
) -> SampleRuns:
    """The runs of a batch, given each sample's space (n,), and its stacks as loops want them."""
    raw = np.empty((len(batch.entries), 3), dtype=np.uint64)
    sample = np.empty(len(batch.entries), dtype=np.int64)
    found = list_runs(stacks, raw, sample)
    raw, sample = raw[:found], sample[:found]
    image, inside = address_spaces.runs_to_image(spaces[sample], runtime_addresses(raw[:, :2]))
    judged = judge(Runs(image[:, 0], image[:, 1], np.ones(found, dtype=np.uint64)), code)
    valid = judged.valid & inside
    return SampleRuns(
        first=judged.first,
        last=_at_their_branch(judged.last, valid, code),
        valid=valid,
        prediction=raw[:, 2].astype(np.uint8),
        sample=sample,
        led_to=_led_to(batch, spaces, raw[:, 1], sample, address_spaces, code),
        weight=batch.weight,
    )


def _led_to(
    batch: BranchStacks,
    spaces: I64,
    end: U64,
    sample: I64,
    address_spaces: AddressSpaces,
    code: InstructionTable,
) -> I64:
    """Where the newest entry of each sample went, if the newest run, by its end, ends with it."""
    found = np.full(len(batch), -1)
    newest = np.flatnonzero(np.diff(sample, prepend=-1))
    rows = sample[newest]
    entries = batch.entries[batch.offsets[rows]]
    target = runtime_addresses(entries[:, [1, 1]])
    image, inside = address_spaces.runs_to_image(spaces[rows], target)
    known = inside & (end[newest] == entries[:, 0])
    found[rows] = np.where(known, code.index_of(image[:, 0]), -1)
    return found


def _at_their_branch(last: I64, valid: Bools, instructions: InstructionTable) -> I64:
    """The last instructions of runs (k,), where one is the compare of a fused pair its branch."""
    rows = np.flatnonzero(valid)
    meant = next_branches(last[rows], instructions)
    fused = meant >= 0
    fused[fused] = instructions.kind[meant[fused]] == Kind.COND
    moved = last.copy()
    moved[rows[fused]] = meant[fused]
    return moved


def next_marked(marked: Bools) -> I64:
    """(m + 1,): number of the first marked one of m at or behind each, else m.

    >>> next_marked(np.array([False, True, False])).tolist()
    [1, 1, 3, 3]
    """
    size = len(marked)
    found = np.full(size + 1, size, dtype=np.int64)
    rows = np.flatnonzero(marked)
    found[rows] = rows
    return np.minimum.accumulate(found[::-1])[::-1].copy()
