"""A dump of branch registers as a source of one sample: what the formats of such dumps share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks, from_lists
from lbr2pgo.model.quirks import Quirk
from lbr2pgo.sources.base import EventInfo, Sniff, SourceFormat, SourceInfo, SymbolResolver
from lbr2pgo.sources.registers.register_dump import Register, keys_in, parse, read_text
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

Key = TypeVar("Key", int, str)

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
    levels: Sequence[str | None] = ()
    """Exception level of each entry's target as its record tells it; none where no record does."""


@dataclass(frozen=True, slots=True)
class DumpSource:
    """A register dump as one sample. Implements `StackSource`."""

    info: SourceInfo
    decoded: Decoded

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
            details=decoded.details,
        )
        return DumpSource(info, decoded)

    return SourceFormat(name, summary, references, sniff, open_, quirks=quirks)
