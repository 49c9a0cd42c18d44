"""`BranchStacks`: a batch of branch-stack samples, as arrays.

An entry's flags are kept as the word that Linux defines for `struct perf_branch_entry`
(include/uapi/linux/perf_event.h), whatever format it was read from: the kernel's layout is the
one all recorders are mapped to, and copying it is the cheapest reader. The functions below take
the word apart; each works on scalars and on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbr2pgo.native import bits
from lbr2pgo.support.addresses import RuntimeAddresses, runtime_addresses
from lbr2pgo.support.arrays import I32, I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import numbers_in, offsets_of
from lbr2pgo.support.tables import same_length, seal

# Bits of the flags word.
MISPREDICTED, PREDICTED = bits.MISPREDICTED, bits.PREDICTED
IN_TRANSACTION, ABORT = bits.IN_TRANSACTION, bits.ABORT
NOT_TAKEN = 1 << bits.NOT_TAKEN_SHIFT
CYCLES_SHIFT, CYCLES_MASK = bits.CYCLES_SHIFT, bits.CYCLES_MASK
TYPE_SHIFT, TYPE_MASK = bits.TYPE_SHIFT, bits.TYPE_MASK
SPEC_SHIFT, SPEC_MASK = bits.SPEC_SHIFT, bits.SPEC_MASK
NEW_TYPE_SHIFT, NEW_TYPE_MASK = bits.NEW_TYPE_SHIFT, bits.NEW_TYPE_MASK
MISSING, SATURATED = bits.MISSING, bits.SATURATED
PRIV_SHIFT, PRIV_MASK = bits.PRIV_SHIFT, bits.PRIV_MASK

# PERF_BR_*: branch types, as perf prints them.
BRANCH_TYPES = bits.BRANCH_TYPES
FIRST_EXCEPTION = bits.FIRST_EXCEPTION
"""From this type on no instruction of the program asked for the branch: EXTEND_ABI says so of
faults, fast interrupts and debug exceptions."""
NEW_BRANCH_TYPES = bits.NEW_BRANCH_TYPES
# PERF_BR_SPEC_*
SPEC_OUTCOMES = bits.SPEC_OUTCOMES
SPEC_WRONG_PATH = bits.SPEC_WRONG_PATH

# PERF_SAMPLE_BRANCH_*: what a recording kept, bits of `branch_sample_type`.
BRANCH_FILTER_BITS = {
    "user": 0, "kernel": 1, "hv": 2, "any": 3, "any_call": 4, "any_ret": 5, "ind_call": 6,
    "abort_tx": 7, "in_tx": 8, "no_tx": 9, "cond": 10, "call_stack": 11, "ind_jmp": 12,
    "call": 13, "no_flags": 14, "no_cycles": 15, "save_type": 16, "hw_index": 17,
    "priv": 18, "counter": 19,
}  # fmt: skip


_CYCLE_CODES = {MISSING: 0, SATURATED: CYCLES_MASK, 0: bits.ZERO_CYCLES}
"""What an entry's 20 bits of cycles hold, where that is not their number."""
_CYCLES_OF_CODE = {code: cycles for cycles, code in _CYCLE_CODES.items()}


def cycles_of(flags: int) -> int:
    """Cycles since the previous entry, MISSING or SATURATED."""
    code = flags >> bits.CYCLES_HIGH_SHIFT << 16 | flags >> CYCLES_SHIFT & CYCLES_MASK
    return _CYCLES_OF_CODE.get(code, code)


def cycle_flags(cycles: int) -> int:
    """The bits that say so many cycles, below 2^20 - 1, MISSING or SATURATED.

    >>> [hex(cycle_flags(cycles)) for cycles in (7, 69888, SATURATED, MISSING)]
    ['0x70', '0x1000000000011000', '0xffff0', '0x0']
    >>> [cycles_of(cycle_flags(cycles)) for cycles in (0, 69888)]
    [0, 69888]
    """
    cycles = _CYCLE_CODES.get(cycles, cycles)
    return (cycles & CYCLES_MASK) << CYCLES_SHIFT | cycles >> 16 << bits.CYCLES_HIGH_SHIFT


def type_of(flags: U64) -> U64:
    """Index into `BRANCH_TYPES`."""
    return (flags >> np.uint64(TYPE_SHIFT)) & np.uint64(TYPE_MASK)


def type_name(flags: int) -> str:
    """What perf calls the type of one entry; empty where it is not known.

    >>> type_name(1 << TYPE_SHIFT), type_name(15 << TYPE_SHIFT | 3 << NEW_TYPE_SHIFT)
    ('COND', 'ARM64_FIQ')
    >>> type_name(0), type_name(15 << TYPE_SHIFT | 12 << NEW_TYPE_SHIFT)
    ('', 'new type 12')
    """
    number = flags >> TYPE_SHIFT & TYPE_MASK
    if BRANCH_TYPES[number] != "EXTEND_ABI":
        return BRANCH_TYPES[number] if number else ""
    new = flags >> NEW_TYPE_SHIFT & NEW_TYPE_MASK
    return NEW_BRANCH_TYPES[new] if new < len(NEW_BRANCH_TYPES) else f"new type {new}"


def type_flags(name: str) -> int:
    """The bits that say this type, of BRANCH_TYPES or NEW_BRANCH_TYPES."""
    if name in BRANCH_TYPES:
        return BRANCH_TYPES.index(name) << TYPE_SHIFT
    new = NEW_BRANCH_TYPES.index(name)
    return BRANCH_TYPES.index("EXTEND_ABI") << TYPE_SHIFT | new << NEW_TYPE_SHIFT


def spec_of(flags: U64) -> U64:
    """Index into `SPEC_OUTCOMES`."""
    return (flags >> np.uint64(SPEC_SHIFT)) & np.uint64(SPEC_MASK)


@dataclass(frozen=True, slots=True)
class CallChains:
    """Call stacks of n samples; sample `i` owns frames `offsets[i]:offsets[i + 1]`.

    The interrupted instruction comes first, then return addresses, the outermost caller's last.
    """

    frames: U64
    """(c,): addresses as `SourceInfo.addresses` says."""
    offsets: I64
    """(n + 1,), starting at 0, never decreasing, ending at c."""

    def __post_init__(self) -> None:
        seal(self)
        check_offsets(self.offsets, len(self.frames), "frames")

    def of_samples(self, rows: I64) -> CallChains:
        """Those of (k,) samples."""
        first, past = self.offsets[rows], self.offsets[rows + 1]
        return CallChains(self.frames[numbers_in(first, past)], offsets_of(past - first))

    def without(self, samples: Bools) -> CallChains:
        """The same with none for these samples (n,)."""
        lengths = np.diff(self.offsets)
        kept = np.repeat(~samples, lengths)
        ends = np.cumsum(np.where(samples, 0, lengths))
        return CallChains(self.frames[kept], np.concatenate([self.offsets[:1], ends]))


def check_offsets(offsets: I64, size: int, rows: str) -> None:
    """Raise ValueError unless (n + 1,) offsets cut `size` rows into n pieces."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != size:
        raise ValueError(f"offsets must start at 0 and end at the number of {rows}")


@dataclass(frozen=True, slots=True)
class BranchStacks:
    """Samples and their branch stacks; sample `i` owns entries `offsets[i]:offsets[i + 1]`.

    A sample without a stack has no entries and is still counted. Within a sample the newest
    entry comes first.
    """

    entries: U64
    """(m, 3): from, to, flags; addresses as `SourceInfo.addresses` says."""
    offsets: I64
    """(n + 1,), starting at 0, never decreasing, ending at m."""
    pid: I32
    """(n,), -1 where the input does not say."""
    tid: I32
    """(n,), -1 where the input does not say."""
    time: U64
    """(n,), nanoseconds, or any number that orders samples among the source's space events."""
    event: I32
    """(n,), index into `SourceInfo.events`; -1 where the input does not say."""
    ip: RuntimeAddresses
    """(n,), the interrupted instruction, 0 where the input does not say."""
    weight: U64
    """(n,), how many identical samples this one stands for; 1 unless the input is aggregated."""
    counters: U64 | None = None
    """(m,), what PERF_SAMPLE_BRANCH_COUNTERS keeps with each entry: occurrences of the events that
    were logged since the entry before it, a few bits each; None where no event records them, 0 for
    entries of those that don't."""
    chains: CallChains | None = None
    """The call stack of each sample; None where the input holds none."""
    cpu: I32 | None = None
    """(n,), the processor that each sample was taken on, -1 where the input does not say; None
    where it says none."""
    accesses: U64 | None = None
    """(n, 2): the run-time address of the data that each sample is of, and PERF_SAMPLE_DATA_SRC's
    word, which says what was done; 0, 0 for samples of no access; None where the input has none."""

    def __post_init__(self) -> None:
        seal(self)
        n = len(self.offsets) - 1
        check_offsets(self.offsets, len(self.entries), "entries")
        if self.entries.ndim != 2 or self.entries.shape[1] != 3:
            raise ValueError(f"entries must have shape (m, 3), not {self.entries.shape}")
        same_length(self, "pid", "tid", "time", "event", "ip", "weight", "cpu", rows=n)
        same_length(self, "counters", rows=len(self.entries))
        if self.accesses is not None and self.accesses.shape != (n, 2):
            raise ValueError(f"accesses must have shape ({n}, 2), not {self.accesses.shape}")
        if self.chains is not None and len(self.chains.offsets) != n + 1:
            raise ValueError(f"{len(self.chains.offsets) - 1} call stacks for {n} samples")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of_samples(self, rows: I64) -> BranchStacks:
        """(k,) of the samples.

        >>> stacks = from_lists([[(5, 6, 0), (3, 4, 0)], [], [(7, 8, 0)]])
        >>> stacks.of_samples(np.array([1, 2])).from_.tolist()
        [7]
        """
        first, past = self.offsets[rows], self.offsets[rows + 1]
        entries = numbers_in(first, past)
        return BranchStacks(
            self.entries[entries], offsets_of(past - first),
            self.pid[rows], self.tid[rows], self.time[rows], self.event[rows], self.ip[rows],
            self.weight[rows],
            None if self.counters is None else self.counters[entries],
            None if self.chains is None else self.chains.of_samples(rows),
            None if self.cpu is None else self.cpu[rows],
            None if self.accesses is None else self.accesses[rows],
        )  # fmt: skip

    def trimmed(self, newest: int | I64, oldest: int) -> BranchStacks:
        """The same stacks without so many of their newest (of each: (n,)) and oldest entries.

        >>> stacks = from_lists([[(5, 6, 0), (3, 4, 0), (1, 2, 0)], [(7, 8, 0)]])
        >>> kept = stacks.trimmed(1, 1)
        >>> kept.from_.tolist(), kept.offsets.tolist()
        ([3], [0, 1, 1])
        """
        if not np.any(newest) and not oldest:
            return self
        first = np.minimum(self.offsets[:-1] + newest, self.offsets[1:])
        return self._between(first, np.maximum(self.offsets[1:] - oldest, first))

    def cut(self, depth: int) -> BranchStacks:
        """The same stacks with at most so many entries, the newest ones.

        >>> from_lists([[(5, 6, 0), (3, 4, 0), (1, 2, 0)], [(7, 8, 0)]]).cut(2).from_.tolist()
        [5, 3, 7]
        """
        first = self.offsets[:-1]
        return self._between(first, np.minimum(first + depth, self.offsets[1:]))

    def _between(self, first: I64, past: I64) -> BranchStacks:
        """Each sample with its entries from the first (n,) up to before that one (n,)."""
        rows = numbers_in(first, past)
        return replace(
            self,
            entries=self.entries[rows],
            offsets=np.concatenate([self.offsets[:1], np.cumsum(past - first)]),
            counters=None if self.counters is None else self.counters[rows],
        )

    @property
    def from_(self) -> RuntimeAddresses:
        """(m,): address of each branch instruction."""
        return runtime_addresses(self.entries[:, 0])

    @property
    def to(self) -> RuntimeAddresses:
        """(m,): address each branch went to."""
        return runtime_addresses(self.entries[:, 1])

    @property
    def flags(self) -> U64:
        """(m,): flag words, see the module's docstring."""
        return self.entries[:, 2]


def from_lists(stacks: Sequence[Sequence[tuple[int, int, int]]], pid: int = -1) -> BranchStacks:
    """Samples from lists of (from, to, flags), newest entry first; for small inputs."""
    n = len(stacks)
    rows = [entry for stack in stacks for entry in stack]
    offsets = offsets_of([len(stack) for stack in stacks])
    return BranchStacks(
        entries=np.array(rows, dtype=np.uint64).reshape(-1, 3),
        offsets=offsets,
        pid=np.full(n, pid, dtype=np.int32),
        tid=np.full(n, pid, dtype=np.int32),
        time=np.zeros(n, dtype=np.uint64),
        event=np.full(n, -1, dtype=np.int32),
        ip=runtime_addresses(np.zeros(n, dtype=np.uint64)),
        weight=np.ones(n, dtype=np.uint64),
    )
