"""Symbol tables written by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.elf.symbols import STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, Symbols


@dataclass(frozen=True)
class Row:
    """One symbol; a global function if nothing else is said."""

    name: str
    start: int
    size: int = 0
    local: bool = False
    weak: bool = False
    kind: int = STT_FUNC
    file: str = ""

    @property
    def binding(self) -> int:
        return STB_LOCAL if self.local else STB_WEAK if self.weak else STB_GLOBAL


def names(words: list[str]) -> Names:
    table = [word.encode() + b"\0" for word in words]
    offsets = np.cumsum([0, *map(len, table)])[:-1]
    return Names(b"".join(table), offsets)


def symbol_table(*rows: Row) -> Symbols:
    """The table that holds these rows, in this order where they start together."""
    ordered = sorted(rows, key=lambda row: row.start)
    return Symbols(
        start=np.array([row.start for row in ordered], np.uint64),
        size=np.array([row.size for row in ordered], np.uint64),
        names=names([row.name for row in ordered]),
        binding=np.array([row.binding for row in ordered], np.uint8),
        kind=np.array([row.kind for row in ordered], np.uint8),
        section=np.ones(len(ordered), np.int32),
        file=names([row.file for row in ordered]),
        origin=".symtab",
    )
