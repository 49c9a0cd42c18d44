"""Instructions of one word, told by its bits: what architectures with such encodings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lbr2pgo.program.code.architecture import ControlFlow, MachineCode
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.arrays import I64, U8, U32, Bools
from lbr2pgo.support.dataclass import dataclass

WORD = 4
"""Bytes of a word."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Words with `word & mask == value`."""

    mask: int
    value: int
    kind: Kind
    distance: Callable[[U32], I64] | None = None
    """Of direct branches: from the instruction to its target, in bytes."""


def words_at(code: MachineCode) -> U32:
    """(n,): the four bytes from each instruction's start on."""
    word: U32 = code.data[code.offset[:, np.newaxis] + np.arange(WORD)].view("<u4")[:, 0]
    return word


def kinds_of(word: U32, patterns: Sequence[Pattern]) -> tuple[U8, I64]:
    """Kinds (n,), and distances to targets where patterns have any; the last that matches counts.

    >>> patterns = Pattern(0xF, 1, Kind.JUMP), Pattern(0xFF, 0x21, Kind.RET)
    >>> kinds_of(np.array([0x11, 0x21, 0x30], np.uint32), patterns)[0].tolist()
    [2, 6, 0]
    """
    kind = np.zeros(len(word), np.uint8)
    distance = np.zeros(len(word), np.int64)
    for pattern in patterns:
        rows = np.flatnonzero((word & np.uint32(pattern.mask)) == pattern.value)
        kind[rows] = pattern.kind
        if pattern.distance is not None:
            distance[rows] = pattern.distance(word[rows])
    return kind, distance


def flow_of(code: MachineCode, kind: U8, distance: I64) -> ControlFlow:
    """Kinds, and the targets of those that are direct branches."""
    has_target = np.isin(kind, (Kind.JUMP, Kind.CALL, Kind.COND))
    target = np.where(has_target, code.address + distance.view(np.uint64), np.uint64(0))
    return ControlFlow(kind, target, has_target)


def are_any(word: U32, patterns: Sequence[tuple[int, int]]) -> Bools:
    """(n,): which words have one of these values under its mask."""
    found = np.zeros(len(word), np.bool_)
    for mask, value in patterns:
        found |= (word & np.uint32(mask)) == value
    return found
