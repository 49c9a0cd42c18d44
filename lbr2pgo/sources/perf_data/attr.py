"""`struct perf_event_attr`: what an event samples, its name, and where its fields lie.

Sources: include/uapi/linux/perf_event.h; names as perf derives them (perf:
tools/perf/util/evsel.c, evsel__name, v6.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass

_HARDWARE_NAMES = (
    "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
    "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles",
)  # fmt: skip
_SOFTWARE_NAMES = (
    "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
    "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output",
    "cgroup-switches",
)  # fmt: skip
_NAMES = {abi.TYPE_HARDWARE: _HARDWARE_NAMES, abi.TYPE_SOFTWARE: _SOFTWARE_NAMES}

# One word each, in the order in which a sample holds them.
_FIXED_FIELDS = (
    abi.SAMPLE_IDENTIFIER, abi.SAMPLE_IP, abi.SAMPLE_TID, abi.SAMPLE_TIME, abi.SAMPLE_ADDR,
    abi.SAMPLE_ID, abi.SAMPLE_STREAM_ID, abi.SAMPLE_CPU, abi.SAMPLE_PERIOD,
)  # fmt: skip
# The same for `struct sample_id` at the end of the other records.
_TRAILER_FIELDS = (
    abi.SAMPLE_TID, abi.SAMPLE_TIME, abi.SAMPLE_ID, abi.SAMPLE_STREAM_ID, abi.SAMPLE_CPU,
    abi.SAMPLE_IDENTIFIER,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PerfAttr:
    """The parts of one event's attr that matter here."""

    type: int
    config: int
    sample_type: int
    read_format: int
    flags: int
    branch_sample_type: int
    ids: tuple[int, ...] = ()
    name: str | None = None
    rate: int = 0
    """Events between samples; or, where the flags say so, samples a second."""
    registers: int = 0
    """Bits of the user's registers that samples hold (sample_regs_user)."""

    def display_name(self) -> str:
        """The name it was recorded under, or one derived from its type."""
        if self.name is not None:
            return self.name
        names = _NAMES.get(self.type, ())
        if self.config < len(names):
            return names[self.config] + self._modifier()
        if self.type == abi.TYPE_RAW:
            return f"raw 0x{self.config:x}" + self._modifier()
        return f"type {self.type} config 0x{self.config:x}" + self._modifier()

    def _modifier(self) -> str:
        excluded = self.flags & (abi.ATTR_EXCLUDE_USER | abi.ATTR_EXCLUDE_KERNEL)
        return {abi.ATTR_EXCLUDE_KERNEL: ":u", abi.ATTR_EXCLUDE_USER: ":k"}.get(excluded, "")

    @property
    def period(self) -> int | None:
        """Events between samples, where that is what was asked for."""
        return None if self.flags & abi.ATTR_FREQ else self.rate

    @property
    def precise_ip(self) -> int:
        """How near to the event the interrupted instruction is, from 0 to 3."""
        return self.flags >> abi.PRECISE_IP_SHIFT & 3

    def sample_word(self, field: int) -> int:
        """Which word of a sample, its header being word 0, holds a field; -1 if none does."""
        if not self.sample_type & field:
            return -1
        before = _FIXED_FIELDS[: _FIXED_FIELDS.index(field)]
        return 1 + sum(bool(self.sample_type & other) for other in before)

    @property
    def has_call_chains(self) -> bool:
        """Whether samples hold call chains that the kernel has walked.

        In call-stack mode the branches stand for the user's frames, and of these the chain has
        the innermost alone (perf: tools/perf/util/machine.c, resolve_lbr_callchain_sample).
        """
        is_made = self.branch_sample_type >> BRANCH_FILTER_BITS["call_stack"] & 1
        return bool(self.sample_type & abi.SAMPLE_CALLCHAIN) and not is_made

    @property
    def has_accesses(self) -> bool:
        """Whether samples say which data they are of, and what was done with it."""
        wanted = abi.SAMPLE_ADDR | abi.SAMPLE_DATA_SRC
        return self.sample_type & wanted == wanted

    @property
    def fixed_words(self) -> int:
        """Words of a sample up to its first part of variable length."""
        return 1 + sum(bool(self.sample_type & field) for field in _FIXED_FIELDS)

    def trailer_offset(self, field: int) -> int | None:
        """Offset of a field from the end of a record that is no sample, negative."""
        if not (self.flags & abi.ATTR_SAMPLE_ID_ALL and self.sample_type & field):
            return None
        after = _TRAILER_FIELDS[_TRAILER_FIELDS.index(field) :]
        return -8 * sum(bool(self.sample_type & other) for other in after)


def parse_attr(raw: bytes, ids: Sequence[int] = (), name: str | None = None) -> PerfAttr:
    """Read an attr of any version's size; fields that it is too old for are 0."""
    padded = raw[: abi.ATTR.size].ljust(abi.ATTR.size, b"\0")
    kind, _, config, rate, sample_type, read_format, flags, *_, branches, registers = (
        abi.ATTR.unpack(padded)
    )
    return PerfAttr(
        kind, config, sample_type, read_format, flags, branches, tuple(ids), name, rate, registers
    )


def times_everything(attrs: Sequence[PerfAttr]) -> bool:
    """Whether samples and all other records say when they happened."""
    return all(
        attr.sample_type & abi.SAMPLE_TIME and attr.flags & abi.ATTR_SAMPLE_ID_ALL for attr in attrs
    )


def id_field(attrs: Sequence[PerfAttr]) -> int | None:
    """The PERF_SAMPLE_* field by which records of several events are told apart.

    It lies at one place in all of them (perf: evlist__valid_sample_type), so the first decides.
    """
    for field in (abi.SAMPLE_IDENTIFIER, abi.SAMPLE_ID):
        if attrs[0].sample_type & field:
            return field
    return None


def layout_rows(attrs: Sequence[PerfAttr]) -> I64:
    """The `fields` of `sources.perf_data._perf_records.Layouts`: one row for each event.

    Times are left out unless every record has one.
    """
    timed = times_everything(attrs)
    rows = [
        (
            attr.sample_word(abi.SAMPLE_IP),
            attr.sample_word(abi.SAMPLE_TID),
            attr.sample_word(abi.SAMPLE_TIME) if timed else -1,
            attr.sample_word(abi.SAMPLE_CPU),
            attr.sample_word(abi.SAMPLE_ADDR),
            attr.fixed_words,
            attr.sample_type & 0x7FFF_FFFF_FFFF_FFFF,
            attr.read_format & 0x7FFF_FFFF_FFFF_FFFF,
            int(bool(attr.branch_sample_type & abi.BRANCH_HW_INDEX)),
            int(bool(attr.branch_sample_type & abi.BRANCH_COUNTERS)),
            int(attr.has_call_chains),
            attr.registers.bit_count(),
        )
        for attr in attrs
    ]
    return np.array(rows, np.int64)
