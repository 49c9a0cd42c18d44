"""Basic blocks as BOLT builds them (BOLT: BinaryFunction.cpp, buildCFG).

A block starts at a label or behind an instruction that ends one. Labels are targets of direct
branches and calls, of jump tables and of exceptions; symbols inside functions; and addresses of
code that other code or data holds. Calls don't end a block, so a return usually lands inside one.
All functions are cut up at once, as arrays.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.program.blocks.idioms import Idioms
from lbr2pgo.program.blocks.jump_tables import find_jump_tables
from lbr2pgo.program.blocks.references import CodeReferences
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.program.elf.eh_frame import landing_pads
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_array
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, ascending, same_length, seal, stacked, table
from lbr2pgo.support.threads import both, made_of_each

_ENDS = (Kind.COND, Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET, Kind.TRAP)


@dataclass(frozen=True, slots=True)
class BlockLabels:
    """Addresses of labels, each column ascending and without repeats."""

    address: ImageAddresses
    """All of them."""
    entries: ImageAddresses
    """Those that code outside the function may know."""
    landing_pads: ImageAddresses
    referred: ImageAddresses
    """Those that relocated data holds: where an indirect jump may go if nothing else is known."""
    table_jump: ImageAddresses
    """Address of a jump through a table, with…"""
    table_target: ImageAddresses
    """…one of its targets; rows, not ascending."""

    def __post_init__(self) -> None:
        seal(self)
        for column in ("address", "entries", "landing_pads", "referred"):
            ascending(self, column)
        same_length(self, "table_jump", "table_target")


def find_labels(
    image: Image,
    code: Disassembly,
    callers: Disassembly,
    references: CodeReferences,
    idioms: Idioms,
) -> BlockLabels:
    """Labels of the functions that `code` holds; `callers` are others that may enter them."""
    functions = code.functions
    tables, pads = both(
        lambda: find_jump_tables(image, code, references, idioms),
        lambda: _landing_pads(image, code),
    )
    own, foreign = _branch_targets(code)
    _, entered = _branch_targets(callers)
    own_table = functions.containing(tables.target) == tables.function
    _, taken = idioms.taken_addresses(code)
    taken = taken[functions.containing(taken) >= 0]  # starts of functions do no harm here
    outside = (functions.secondary_entries, foreign, entered, taken, tables.target[~own_table])
    entries = distinct(np.concatenate(outside))
    every = (entries, own, tables.target, pads, references.labels)
    referred = distinct(np.concatenate((references.by_data, tables.target)))
    return BlockLabels(
        address=distinct(np.concatenate(every)),
        entries=entries,
        landing_pads=pads,
        referred=referred if references.present else pads[:0],
        table_jump=tables.jump[own_table],
        table_target=tables.target[own_table],
    )


def _branch_targets(code: Disassembly) -> tuple[ImageAddresses, ImageAddresses]:
    """Targets of direct branches and calls: in the function itself, and in others."""
    direct = code.is_kind(Kind.COND, Kind.JUMP, Kind.CALL) & code.has_target
    target, function = code.target[direct], code.function[direct]
    hit = code.functions.containing(target)
    return target[hit == function], target[(hit >= 0) & (hit != function)]


def _landing_pads(image: Image, code: Disassembly) -> ImageAddresses:
    functions, frames = code.functions, code.functions.frames
    function = distinct(code.function)
    start, size = functions.start[function], functions.size[function]
    lsda = frames.lsda_of(start)
    has_one = lsda > 0
    return distinct(landing_pads(image, start[has_one], size[has_one], lsda[has_one]))


@table
class BasicBlocks(Tabular):
    """Blocks by start address; columns of length n."""

    start: ImageAddresses
    last: ImageAddresses
    """Address of the last instruction."""
    function: I64
    falls: Bools
    """Whether execution may go on in the next block."""
    ends_in_call: Bools
    is_entry: Bools
    """The function's first block, or one that something outside refers to."""
    is_landing_pad: Bools

    def __post_init__(self) -> None:
        ascending(self, "start")

    def containing(self, addresses: PlacedAddresses, functions: I64) -> I64:
        """(m,): block of each address within a given function, -1 where there is none."""
        if not len(self):
            return np.full(len(addresses), -1, np.int64)
        at = last_at_or_below(self.start, addresses)
        return np.where((at >= 0) & (self.function[at] == functions), at, -1)


@dataclass(frozen=True, slots=True)
class _Exits:
    """How control leaves each instruction."""

    is_local: Bools
    """A direct jump to a place in the same function."""
    ends: Bools
    is_conditional_tail_call: Bools
    is_call: Bools


def build_blocks(code: Disassembly, labels: BlockLabels) -> BasicBlocks:
    """Cut functions into blocks at their labels, some functions in each thread."""
    return stacked(list(made_of_each(partial(_blocks, labels=labels), code.pieces())))


def _blocks(code: Disassembly, labels: BlockLabels) -> BasicBlocks:
    exits = _exits(code)
    at = code.at(labels.address)
    is_label = np.zeros(len(code), np.bool_)
    is_label[at[at >= 0]] = True
    starts = np.flatnonzero(_is_start(code, exits, is_label))
    lasts = np.append(starts[1:], len(code)) - 1 if len(starts) else starts
    start = code.address[starts]
    is_first = start == code.functions.start[code.function[starts]]
    return BasicBlocks(
        start=start,
        last=code.address[lasts],
        function=code.function[starts],
        falls=_falls(code, exits, labels, starts, lasts),
        ends_in_call=exits.is_call[lasts],
        is_entry=is_first | among(start, labels.entries),
        is_landing_pad=among(start, labels.landing_pads),
    )


def _exits(code: Disassembly) -> _Exits:
    start, end = code.functions.start[code.function], code.functions.end[code.function]
    inside = (code.target >= start) & (code.target < end)
    direct = code.is_kind(Kind.COND, Kind.JUMP) & code.has_target
    tail = direct & ~inside
    return _Exits(
        is_local=direct & inside,
        ends=code.is_kind(*_ENDS),
        is_conditional_tail_call=tail & code.is_kind(Kind.COND),
        is_call=code.is_kind(*CALLS) | tail,
    )


def _is_start(code: Disassembly, exits: _Exits, is_label: Bools) -> Bools:
    """Instructions that start a block.

    A jump right behind a conditional one shares its block, unless something jumps there.
    """
    is_jump = code.is_kind(Kind.JUMP)
    parts = (
        code.is_kind(Kind.INDIRECT_JUMP, Kind.RET)
        | (is_jump & exits.is_local)
        | exits.is_conditional_tail_call
    )
    shares = is_jump & exits.is_local & ~_before(parts)
    starts: Bools = ~code.continues() | is_label | (_before(exits.ends) & ~shares)
    return starts


def _before(flags: Bools) -> Bools:
    """Each row's flag of the row before; False for the first."""
    shifted = np.zeros_like(flags)
    shifted[1:] = flags[:-1]
    return shifted


def _falls(code: Disassembly, exits: _Exits, labels: BlockLabels, starts: I64, lasts: I64) -> Bools:
    """Whether control may pass from each block to the next one.

    It does if the last instruction lets it pass, or if a jump of the block goes just there. A
    block with two jumps passes only in the latter way, whatever the second one is.
    """
    if not len(starts):
        return np.zeros(0, np.bool_)
    jumps = np.add.reduceat(exits.is_local.astype(np.int64), starts)
    passes = ~exits.ends[lasts] | exits.is_conditional_tail_call[lasts]
    conditional = code.kind[lasts] == Kind.COND
    falls: Bools = np.where(jumps == 0, passes, (jumps == 1) & conditional)
    following = np.concatenate((code.address[starts[1:]], image_array([0])))
    for behind in (0, 1):
        at = np.maximum(lasts - behind, starts)
        falls |= exits.is_local[at] & (code.target[at] == following)
    falls |= _indirect_leads_on(code, labels, lasts, following)
    falls &= np.append(code.continues()[starts[1:]], False)
    return falls


def _indirect_leads_on(
    code: Disassembly, labels: BlockLabels, lasts: I64, following: ImageAddresses
) -> Bools:
    """Whether an indirect jump at a block's end may go to the place behind it.

    Some recorders don't see a jump to the next instruction, so runs do pass there.
    """
    leads_on = np.zeros(len(lasts), np.bool_)
    pairs = set(zip(labels.table_jump.tolist(), labels.table_target.tolist(), strict=True))
    rows = np.flatnonzero(code.kind[lasts] == Kind.INDIRECT_JUMP)
    jump, behind = code.address[lasts[rows]], following[rows]
    asked = zip(jump.tolist(), behind.tolist(), strict=True)
    leads_on[rows] = [pair in pairs for pair in asked]
    has_table = among(jump, np.sort(labels.table_jump))
    leads_on[rows] |= ~has_table & among(behind, labels.referred)
    return leads_on
