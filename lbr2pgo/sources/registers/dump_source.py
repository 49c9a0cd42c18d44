"""A dump of branch registers as a source of one sample: what the formats of such dumps share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks, from_lists
from lbr2pgo.model.quirks import Quirk
from lbr2pgo.sources.base import (
    EventInfo,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
)
from lbr2pgo.sources.registers.register_dump import Register, keys_in, parse, read_text
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

Key = TypeVar("Key", int, str)
RecordT = TypeVar("RecordT")

ONE_CORE = "Give one dump of one core."


def unique(
    registers: Sequence[Register], key_of: Callable[[str], Key | None], cure: str = ONE_CORE
) -> tuple[dict[Key, int], int]:
    """Values by what `key_of` makes of a register's key, and how many it makes nothing of.

    Raises InputError, naming the line, for a register that stands there twice.
    """
    values: dict[Key, int] = {}
    others = 0
    for register in registers:
        key = key_of(register.key)
        if key is None:
            others += 1
        elif key in values:
            name = f"{key:#x} ({register.key})" if isinstance(key, int) else register.key
            raise InputError(
                f"register {name} stands here a second time", where=register.where, cure=cure
            )
        else:
            values[key] = register.value
    return values, others


@dataclass(frozen=True, slots=True)
class RecordRegisters:
    """Registers of records, three of each, which their names number from the newest on."""

    kinds: tuple[str, str, str]
    depths: tuple[int, ...]
    """How many records there can be."""
    written: Callable[[str], str]
    """A name of ours as manuals write it."""

    def name_of(self, key: str) -> str | None:
        """A register's kind with its number, `KIND7` for 07 too; None for others."""
        found = self._match(key)
        return f"{found[1]}{int(found[2])}" if found else None

    def shown(self, keys: Iterable[str]) -> bool:
        """Whether two kinds of them stand among these."""
        return len({found[1] for found in map(self._match, keys) if found}) >= 2

    def depth(self, values: Mapping[str, int], stated: int | None, path: str) -> int:
        """How many records there are: so many as another register stated, or as are there.

        Raises InputError, naming the register, unless all of every record are there.
        """
        cure = f"Dump {', '.join(map(self.written, self.kinds))} of every record. {ONE_CORE}"
        numbers = [int(found[2]) for found in map(self._match, values) if found]
        if not numbers:
            raise InputError("holds no branch records", where=path, cure=cure)
        depth = max(numbers) + 1 if stated is None else stated
        names = (f"{kind}{i}" for i in range(depth) for kind in self.kinds)
        missing = next((name for name in names if name not in values), None)
        if missing:
            what = f"{self.written(missing)} is missing: there are {depth} records"
            raise InputError(what, where=path, cure=cure)
        if depth not in self.depths:
            following = self.written(f"{self.kinds[0]}{depth}")
            raise InputError(
                f"{depth} records are no depth of these registers: {following} may be missing",
                where=path,
                cure=f"Depths are {', '.join(map(str, self.depths))}.",
            )
        return depth

    def of(self, values: Mapping[str, int], record: int) -> tuple[int, int, int]:
        """The registers of one record, in the order of kinds."""
        first, second, third = (values[f"{kind}{record}"] for kind in self.kinds)
        return first, second, third

    def _match(self, key: str) -> re.Match[str] | None:
        return re.fullmatch(rf"({'|'.join(self.kinds)})(\d{{1,3}})", key)


def stack(found: Sequence[RecordT | None]) -> tuple[tuple[RecordT, ...], int]:
    """Records up to the first invalid one, and how many valid ones stand behind it."""
    first = tuple(takewhile(lambda record: record is not None, found))
    behind = sum(record is not None for record in found[len(first) :])
    return tuple(record for record in first if record is not None), behind


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the registers of a dump say."""

    event: EventInfo
    machine: str
    """As `uname -m` says it."""
    details: Mapping[str, str]
    entries: Sequence[tuple[int, int, int]]
    """From, to, flags as in `stacks`, newest first."""
    losses: Mapping[str, int]
    """What was not looked at or can't be exact: a reason in words, and how many."""
    no_cycles: str | None = None
    """As `SourceInfo.no_cycles`."""
    no_predictions: str | None = None
    """As `SourceInfo.no_predictions`."""
    levels: Sequence[str | None] = ()
    """Exception level of each entry's target as its record tells it; none where no record does."""


@dataclass(frozen=True, slots=True)
class DumpSource(ShownShortly):
    """A register dump as one sample. Implements `StackSource`."""

    info: SourceInfo
    decoded: Decoded
    __repr__ = ShownShortly.__repr__  # that of dataclasses would be put before it

    def space_events(self) -> Sequence[SpaceEvent]:
        """None: registers know of no mappings."""
        return ()

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """The entries as one sample."""
        yield replace(from_lists([self.decoded.entries]), event=np.zeros(1, dtype=np.int32))

    def health(self) -> Mapping[str, int]:
        """Registers that were not looked at, and the like."""
        return {reason: count for reason, count in self.decoded.losses.items() if count}


def dump_format(
    name: str,
    summary: str,
    references: tuple[str, ...],
    *,
    shows: Callable[[Sequence[str]], bool],
    decode: Callable[[Sequence[Register], str], Decoded],
    quirks: tuple[Quirk, ...],
) -> SourceFormat:
    """A format of register dumps.

    `shows` judges the keys of what are mostly registers in the head of a file; `decode` takes all
    registers and the file's path, and raises InputError where they are not whole.
    """

    def sniff(head: bytes) -> Sniff:
        return Sniff.YES if shows(keys_in(head.decode("utf-8", "replace"))) else Sniff.NO

    def open_(path: Path) -> DumpSource:
        decoded = decode(parse(read_text(path), str(path)), str(path))
        info = SourceInfo(
            path=str(path),
            format=name,
            events=(decoded.event,),
            machine=decoded.machine,
            no_cycles=decoded.no_cycles,
            no_predictions=decoded.no_predictions,
            details=decoded.details,
        )
        return DumpSource(info, decoded)

    return SourceFormat(name, summary, references, sniff, open_, quirks=quirks)
