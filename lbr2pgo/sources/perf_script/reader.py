"""`perf script -F …brstack` text, as perf prints it and as other tools take it.

Samples stand on one line or, with call stacks, on several; in aggregated text a line with a
count stands before each. A stack holds addresses (brstack) or symbols (brstacksym).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.sources.base import (
    SNIFF_SIZE,
    Addresses,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
    with_recorder,
)
from lbr2pgo.sources.perf_script.records import RecordLine, read_comments, read_record
from lbr2pgo.sources.perf_script.samples import Format, new_scratch, read_parts
from lbr2pgo.sources.perf_script.symbols import Symbols
from lbr2pgo.sources.text_lines import CHUNK_SIZE, LineReader
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.errors import InputError

_NAME = "perf script"
_MOST_EVENTS = 256
_RECORDS_AT_ONCE = 1 << 12

# An entry's flags: EVENT (two letters at most), INTX, ABORT, the digits of CYCLES.
_FLAGS = re.compile(rb"/[PM-]N?(?:/[XAPM-]){2,3}/\d+(?:[/\s]|$)", re.MULTILINE)
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
    if any(mark.search(head) for mark in (_FLAGS, _RECORD, _HEADER, _SAMPLE)):
        return Sniff.YES
    lines = head.split(b"\n")
    is_whole = len(head) < SNIFF_SIZE
    if all(_NEUTRAL.fullmatch(line) for line in (lines if is_whole else lines[:-1])):
        return Sniff.MORE
    return Sniff.NO


@dataclass(frozen=True, slots=True)
class _Survey:
    """What one pass over the file tells of it as a whole."""

    facts: I64
    hashes: U64
    event_names: tuple[str, ...]
    records: tuple[tuple[bytes, int], ...]
    """Record lines, and where they stand."""


def _survey(reader: LineReader) -> _Survey:
    from lbr2pgo.native import brstack_lines as lines

    facts = np.zeros(lines.FACTS, dtype=np.int64)
    hashes = np.zeros(_MOST_EVENTS, dtype=np.uint64)
    spans = np.zeros((_MOST_EVENTS, 2), dtype=np.int64)
    found = np.zeros((_RECORDS_AT_ONCE, 2), dtype=np.int64)
    scratch = new_scratch()
    names: list[str] = []
    records: list[tuple[bytes, int]] = []
    for text, base in reader.chunks():
        place = 0
        while place < len(text):
            place, count = lines.survey(
                text, place, len(text), facts, hashes, spans, found, scratch
            )
            records += ((bytes(text[a:b]), base + a) for a, b in found[:count].tolist())
            for a, b in spans[len(names) : facts[lines.EVENTS]].tolist():
                names.append(bytes(text[a:b]).decode("utf-8", "replace"))
    return _Survey(facts, hashes[: len(names)].copy(), tuple(names), tuple(records))


class PerfScript:
    """A file of `perf script` text. Implements `StackSource`.

    Where samples or mappings lack a time, their place in the file stands for it: perf prints in
    the order of time. Samples without a pid have pid -1.
    """

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        from lbr2pgo.native import brstack_lines as lines

        self._reader = LineReader(path, chunk_size)
        self._chunk_size = chunk_size
        survey = _survey(self._reader)
        self._survey = replace(survey, records=())
        facts = self._survey.facts
        self._has_symbols = bool(facts[lines.WITH_SYMBOLS] and not facts[lines.WITH_ADDRESSES])
        self._record_losses: Counter[str] = Counter()
        self._events = self._read_records(survey.records, bool(facts[lines.TIMED]))
        self._health: Counter[str] = Counter()
        self._info = self._read_info(path)

    @property
    def info(self) -> SourceInfo:
        """Facts from the header's comments, and the events that samples name."""
        return self._info

    def space_events(self) -> Sequence[SpaceEvent]:
        """The mappings, forks, comms and exits that the text shows."""
        return self._events

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped."""
        return dict(self._record_losses + self._health)

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield every sample once, in file order.

        Raises InputError where the stacks hold symbols and there is no `resolve`.
        """
        from lbr2pgo.native.brstack_text import LOSSES

        symbols = self._symbols(resolve) if self._has_symbols else None
        self._health = Counter()
        losses = np.zeros(LOSSES, dtype=np.uint64)
        form = Format(self._survey.facts, self._survey.hashes, self._chunk_size, self._has_symbols)
        with closing(read_parts(self._reader.chunks(), form, symbols)) as parts:
            for part in parts:
                losses += part.losses
                yield from map(self._with_own_ips, part.batches)
        self._note_losses(losses, symbols)

    def _with_own_ips(self, batch: BranchStacks) -> BranchStacks:
        """The batch without the addresses that perf made of stacks of calls.

        It prints these stacks in place of the frames that were sampled, the interrupted
        instruction among them (perf: tools/perf/util/machine.c, resolve_lbr_callchain_sample).
        """
        if not self.info.has_call_stacks:
            return batch
        filters = [event.branch_sample_type or 0 for event in self.info.events]
        calls = np.array([*filters, 0]) >> BRANCH_FILTER_BITS["call_stack"] & 1
        return replace(batch, ip=np.where(calls[batch.event] == 1, np.uint64(0), batch.ip))

    def _read_records(
        self, lines: Sequence[tuple[bytes, int]], is_timed: bool
    ) -> tuple[SpaceEvent, ...]:
        """Read the record lines; decide whether times or places order the file."""
        from lbr2pgo.native.brstack_lines import TIMED

        records = [read_record(*line) for line in lines]
        if not is_timed or any(r.event is not None and r.time is None for r in records):
            self._survey.facts[TIMED] = 0
            records = [read_record(*line, is_timed=False) for line in lines]
        self._count_record_losses(records)
        events = [record.event for record in records if record.event is not None]
        return tuple(sorted(events, key=lambda event: event.time))

    def _count_record_losses(self, records: Sequence[RecordLine]) -> None:
        self._record_losses["samples the kernel lost"] = sum(r.lost for r in records)
        damaged = sum(r.is_damaged for r in records)
        self._record_losses["lines of mappings or tasks that can't be read"] = damaged

    def _read_info(self, path: Path) -> SourceInfo:
        from lbr2pgo.native.brstack_lines import HYBRID

        with path.open("rb") as file:
            comments = read_comments(file.read(SNIFF_SIZE))
        return SourceInfo(
            path=str(path),
            format=_NAME,
            addresses=Addresses.IMAGE if self._has_symbols else Addresses.RUNTIME,
            events=with_recorder([comments.event(name) for name in self._survey.event_names]),
            machine=comments.machine,
            has_call_stacks=bool(self._survey.facts[HYBRID]),
            details=comments.facts,
        )

    def _symbols(self, resolve: SymbolResolver | None) -> Symbols:
        if resolve is None:
            raise InputError(
                "the branch stacks hold symbols instead of addresses",
                where=self.info.path,
                cure="Name the binary, or print addresses: perf script -F pid,time,ip,brstack.",
            )
        return Symbols(resolve)

    def _note_losses(self, losses: U64, symbols: Symbols | None) -> None:
        from lbr2pgo.native import brstack_text as kernel

        self._health.update(
            {
                "lines that are no sample and no record": int(losses[kernel.LOST_LINES]),
                "stacks cut short at an unreadable entry": int(losses[kernel.LOST_ENTRIES]),
                "aggregated counts without a sample": int(losses[kernel.LOST_COUNTS]),
                "aggregated counts of 0, taken as 1": int(losses[kernel.LOST_ZEROS]),
                "bytes in lines too long to be read": self._reader.overlong_bytes,
                "branch ends whose symbol the binary lacks": symbols.lost if symbols else 0,
            }
        )


FORMAT = SourceFormat(
    name=_NAME,
    summary="text of perf script with -F brstack (or brstacksym), plain, hybrid or aggregated",
    references=(
        "perf: tools/perf/builtin-script.c, tools/perf/Documentation/perf-script.txt",
        "LLVM: llvm/tools/llvm-profgen/PerfReader.cpp",
    ),
    sniff=_sniff,
    open=PerfScript,
)
