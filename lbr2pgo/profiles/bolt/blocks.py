"""Basic blocks as BOLT builds them (BOLT: BinaryFunction.cpp, buildCFG).

A block starts at a label or behind an instruction that ends one. Calls don't end a block, so a
return usually lands inside one. All functions are cut up at once, as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.profiles.bolt.labels import Labels
from lbr2pgo.profiles.bolt.lines import Lines
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.arrays import I64, U64, Bools

_ENDS = (Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET, Kind.TRAP)


@dataclass(frozen=True, slots=True)
class BoltBlocks:
    """Blocks by start address; columns of length n."""

    start: U64
    last: U64
    """Address of the last instruction."""
    function: I64
    falls: Bools
    """Whether execution may go on in the next block."""
    ends_in_call: Bools
    is_entry: Bools
    """The function's first block, or one that something outside refers to."""
    is_landing_pad: Bools

    def __len__(self) -> int:
        return len(self.start)

    def containing(self, addresses: U64, functions: I64) -> I64:
        """(m,): block of each address within a given function, -1 where there is none."""
        if not len(self):
            return np.full(len(addresses), -1, np.int64)
        at = np.searchsorted(self.start, addresses, side="right").astype(np.int64) - 1
        return np.where((at >= 0) & (self.function[at] == functions), at, -1)


@dataclass(frozen=True, slots=True)
class _Flow:
    """How control leaves each instruction."""

    is_local: Bools
    """A direct jump to a place in the same function."""
    ends: Bools
    is_conditional_tail_call: Bools
    is_call: Bools


def build_blocks(functions: BoltFunctions, lines: Lines, labels: Labels) -> BoltBlocks:
    """Cut functions into blocks at their labels."""
    flow = _flow(functions, lines)
    is_label = np.isin(lines.address, labels.address)
    starts = np.flatnonzero(_is_start(lines, flow, is_label))
    lasts = np.append(starts[1:], len(lines)) - 1 if len(starts) else starts
    start = lines.address[starts]
    is_first = start == functions.start[lines.function[starts]]
    return BoltBlocks(
        start=start,
        last=lines.address[lasts],
        function=lines.function[starts],
        falls=_falls(lines, flow, labels, starts, lasts),
        ends_in_call=flow.is_call[lasts],
        is_entry=is_first | np.isin(start, labels.entries),
        is_landing_pad=np.isin(start, labels.landing_pads),
    )


def _flow(functions: BoltFunctions, lines: Lines) -> _Flow:
    inside = (lines.target >= functions.start[lines.function]) & (
        lines.target < functions.end[lines.function]
    )
    direct = lines.is_kind(Kind.COND, Kind.JUMP) & lines.has_target
    tail = direct & ~inside
    return _Flow(
        is_local=direct & inside,
        ends=lines.is_kind(*_ENDS),
        is_conditional_tail_call=tail & lines.is_kind(Kind.COND),
        is_call=lines.is_kind(Kind.CALL, Kind.INDIRECT_CALL) | tail,
    )


def _is_start(lines: Lines, flow: _Flow, is_label: Bools) -> Bools:
    """Instructions that start a block.

    A jump right behind a conditional one shares its block, unless something jumps there.
    """
    is_jump = lines.is_kind(Kind.JUMP)
    parts = (
        lines.is_kind(Kind.INDIRECT_JUMP, Kind.RET)
        | (is_jump & flow.is_local)
        | flow.is_conditional_tail_call
    )
    shares = is_jump & flow.is_local & ~_before(parts)
    starts: Bools = ~lines.continues() | is_label | (_before(flow.ends) & ~shares)
    return starts


def _before(flags: Bools) -> Bools:
    """Each row's flag of the row before; False for the first."""
    shifted = np.zeros_like(flags)
    shifted[1:] = flags[:-1]
    return shifted


def _falls(lines: Lines, flow: _Flow, labels: Labels, starts: I64, lasts: I64) -> Bools:
    """Whether control may pass from each block to the next one.

    It does if the last instruction lets it pass, or if a jump of the block goes just there. A
    block with two jumps passes only in the latter way, whatever the second one is.
    """
    if not len(starts):
        return np.zeros(0, np.bool_)
    jumps = np.add.reduceat(flow.is_local.astype(np.int64), starts)
    passes = ~flow.ends[lasts] | flow.is_conditional_tail_call[lasts]
    conditional = lines.kind[lasts] == Kind.COND
    falls: Bools = np.where(jumps == 0, passes, (jumps == 1) & conditional)
    following = np.append(lines.address[starts[1:]], np.uint64(0))
    for behind in (0, 1):
        at = np.maximum(lasts - behind, starts)
        falls |= flow.is_local[at] & (lines.target[at] == following)
    falls |= _indirect_leads_on(lines, labels, lasts, following)
    falls &= np.append(lines.continues()[starts[1:]], False)
    return falls


def _indirect_leads_on(lines: Lines, labels: Labels, lasts: I64, following: U64) -> Bools:
    """Whether an indirect jump at a block's end may go to the place behind it.

    Some recorders don't see a jump to the next instruction, so runs do pass there.
    """
    leads_on = np.zeros(len(lasts), np.bool_)
    pairs = set(zip(labels.table_jump.tolist(), labels.table_target.tolist(), strict=True))
    rows = np.flatnonzero(lines.kind[lasts] == Kind.INDIRECT_JUMP)
    jump, behind = lines.address[lasts[rows]], following[rows]
    asked = zip(jump.tolist(), behind.tolist(), strict=True)
    leads_on[rows] = [pair in pairs for pair in asked]
    leads_on[rows] |= ~np.isin(jump, labels.table_jump) & np.isin(behind, labels.referred)
    return leads_on
