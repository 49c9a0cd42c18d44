"""`perf script -F …brstack` text, as perf prints it and as other tools take it.

Samples stand on one line or, with call stacks, on several; in aggregated text a line with a
count stands before each. A stack holds addresses (brstack) or symbols (brstacksym).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.sources.base import (
    SNIFF_SIZE,
    Addresses,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
    with_recorder,
)
from lbr2pgo.sources.perf_script.listing import as_stacks, order_of_listing
from lbr2pgo.sources.perf_script.offsets import MappedCode, are_offsets
from lbr2pgo.sources.perf_script.records import read_comments, read_record
from lbr2pgo.sources.perf_script.samples import SymbolAddresses
from lbr2pgo.sources.text_lines import CHUNK_SIZE, LineReader
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.errors import InputError

_NAME = "perf script"
_OFFSETS = "call stacks of offsets in files, as this perf prints them: give the perf.data"

# An entry's flags: EVENT (two letters at most), INTX, ABORT, the digits of CYCLES.
_FLAGS = re.compile(rb"/[PM-]N?(?:/[XAPM-]){2,3}/\d+(?:[/\s]|$)", re.MULTILINE)
# Entries that were cut down to FROM and TO, as llvm-profgen reads them.
_BARE_ENTRY = re.compile(rb"(?:^|[ \t])0x[0-9a-f]{1,16}/0x[0-9a-f]{1,16}(?:\s|$)", re.MULTILINE)
_RECORD = re.compile(rb"\bPERF_RECORD_(?:MMAP2?|COMM|FORK|EXIT)\b")
_HEADER = re.compile(rb"^# (?:captured on|cmdline|perf version)\s*: ", re.MULTILINE)
# A sample without a stack, as `perf script` prints it: COMM PID TIME: [PERIOD] EVENT: IP …
# Without a limit, a line of nothing but times takes the square of its length.
_SAMPLE = re.compile(
    rb"^ *\S.{0,255} \d+(?:/\d+)? +(?:\[\d+\] +)?\d+\.\d{6,9}: +"
    rb"\S.{0,255}: +(?:[0-9a-f]+ |$)",
    re.MULTILINE,
)
# Lines that other lines of perf script text may be preceded by.
# Blanks are matched in one way only: a line of nothing else must not take quadratic time.
_NEUTRAL = re.compile(rb"[ \t]++[0-9a-f].*|\s*+(?:#.*|//.*|\d++\s*+)?")


def _sniff(head: bytes) -> Sniff:
    if b"\0" in head:
        return Sniff.NO
    if any(mark.search(head) for mark in (_FLAGS, _BARE_ENTRY, _RECORD, _HEADER, _SAMPLE)):
        return Sniff.YES
    lines = head.split(b"\n")
    is_whole = len(head) < SNIFF_SIZE
    if all(_NEUTRAL.fullmatch(line) for line in (lines if is_whole else lines[:-1])):
        return Sniff.MORE
    return Sniff.NO


class PerfScript(ShownShortly):
    """A file of `perf script` text. Implements `StackSource`.

    Where samples or mappings lack a time, their place in the file stands for it: perf prints in
    the order of time. Samples without a pid have pid -1.
    """

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        from lbr2pgo.sources.perf_script.samples import survey

        self._reader = LineReader(path, chunk_size)
        with self._reader.open() as pieces:
            self._survey = survey(pieces)
        with path.open("rb") as file:
            head = file.read(SNIFF_SIZE)
        self._order = order_of_listing(head)
        self._record_losses: Counter[str] = Counter()
        self._events = self._read_records()
        self._health: Counter[str] = Counter()
        self.share_read = 0.0
        self.info = self._read_info(path, head)
        """Facts from the header's comments, and the events that samples name."""

    def space_events(self) -> Sequence[SpaceEvent]:
        """The mappings, forks, comms and exits that the text shows."""
        return self._events

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped."""
        return dict(self._record_losses + self._health)

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield every sample once, in file order; those of a listing at once.

        Raises InputError where the stacks hold symbols and there is no `resolve`.
        """
        batches = self._samples(resolve)
        if self._order is None:
            yield from batches
            return
        found = as_stacks(batches, self._order)
        self._health[f"stacks that were listed an entry a line, {self._order.value}"] = len(found)
        yield found

    def _samples(self, resolve: SymbolResolver | None) -> Iterator[BranchStacks]:
        from lbr2pgo.sources.perf_script.samples import read_samples

        symbols = self._symbols(resolve) if self._survey.has_symbols else None
        self._health = Counter()
        losses: Counter[str] = Counter()
        with (
            self._reader.open() as pieces,
            closing(read_samples(pieces, self._survey, symbols)) as parts,
        ):
            for number, (batch, lost) in enumerate(parts, 1):
                # One part a piece, and one for what the file's end leaves open.
                self.share_read = number / (len(pieces.starts) + 1)
                losses.update(lost)
                if len(batch):
                    yield self._with_addresses(self._with_own_ips(batch))
        self._note_losses(losses, symbols)

    def _with_own_ips(self, batch: BranchStacks) -> BranchStacks:
        """The batch without the frames that perf made of stacks of calls.

        It prints these stacks in place of the frames that were sampled, the interrupted
        instruction among them (perf: tools/perf/util/machine.c, resolve_lbr_callchain_sample).
        """
        if not self.info.has_call_chains:
            return batch
        filters = [event.branch_sample_type or 0 for event in self.info.events]
        calls = np.array([*filters, 0]) >> BRANCH_FILTER_BITS["call_stack"] & 1
        is_made = calls[batch.event] == 1
        chains = None if batch.chains is None else batch.chains.without(is_made)
        return replace(batch, ip=np.where(is_made, np.uint64(0), batch.ip), chains=chains)

    def _with_addresses(self, batch: BranchStacks) -> BranchStacks:
        """The batch without call stacks of offsets in files, which name no place."""
        if batch.chains is None or not are_offsets(batch.chains, self._mapped):
            return batch
        has_chain = np.diff(batch.chains.offsets) > 0
        self._health[_OFFSETS] += int(batch.weight[has_chain].sum())
        ip = np.where(has_chain, np.uint64(0), batch.ip)
        return replace(batch, ip=ip, chains=batch.chains.without(has_chain))

    @cached_property
    def _mapped(self) -> MappedCode:
        return MappedCode.of(self._events)

    def _read_records(self) -> Sequence[SpaceEvent]:
        """Read the record lines; decide whether times or places order the file."""
        records = (read_record(*line) for line in self._survey.records)
        if self._survey.is_timed and any(r.event is not None and r.time is None for r in records):
            self._survey.is_timed = False
        return SpaceEventLog(self._space_events())

    def _space_events(self) -> Iterator[SpaceEvent]:
        losses = self._record_losses
        for line in self._survey.records:
            record = read_record(*line, is_timed=self._survey.is_timed)
            losses[Doubt("samples the kernel lost")] += record.lost
            losses[Doubt("lines of mappings or tasks that can't be read")] += record.is_damaged
            if record.event is not None:
                yield record.event

    def _read_info(self, path: Path, head: bytes) -> SourceInfo:
        comments = read_comments(head)
        return SourceInfo(
            path=str(path),
            format=_NAME,
            addresses=Addresses.IMAGE if self._survey.has_symbols else Addresses.RUNTIME,
            events=with_recorder([comments.event(name) for name in self._survey.event_names]),
            machine=comments.machine,
            has_call_chains=self._survey.is_hybrid,
            has_times=self._survey.is_timed,
            details=comments.facts,
        )

    def _symbols(self, resolve: SymbolResolver | None) -> SymbolAddresses:
        if resolve is None:
            raise InputError(
                "the branch stacks hold symbols instead of addresses",
                where=self.info.path,
                cure="Name the binary, or print addresses: perf script -F pid,time,ip,brstack.",
            )
        return SymbolAddresses(resolve)

    def _note_losses(self, losses: Counter[str], symbols: SymbolAddresses | None) -> None:
        self._health.update(
            {
                Doubt("lines that are no sample and no record"): losses["lines"],
                Doubt("stacks cut short at an unreadable entry"): losses["entries"],
                "aggregated counts without a sample": losses["counts"],
                "aggregated counts of 0, taken as 1": losses["zeros"],
                "call stacks cut to their innermost 65,536 frames": losses["chains"],
                "bytes in lines too long to be read": self._reader.overlong_bytes,
                "branch ends whose symbol the binary lacks": symbols.lost if symbols else 0,
            }
        )


FORMAT = SourceFormat(
    name=_NAME,
    summary="text of perf script with -F brstack (or brstacksym), plain, hybrid or aggregated; "
    "entries may be cut down to FROM/TO, or stand on a line each",
    references=(
        "perf: tools/perf/builtin-script.c, tools/perf/Documentation/perf-script.txt",
        "LLVM: llvm/tools/llvm-profgen/PerfReader.cpp",
    ),
    sniff=_sniff,
    open=PerfScript,
)
