"""What functions do, told so that it can be found again in another build.

Addresses, padding and the order of blocks differ from build to build; registers and instructions
do where the compiler was given other source. So each block is told twice, strictly and loosely, and
by how often it has each word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from lbr2pgo.program.blocks.binary_context import analyze, idioms_of
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions
from lbr2pgo.program.blocks.indirect_jumps import labels_in_order
from lbr2pgo.program.blocks.jump_tables import table_entries
from lbr2pgo.program.blocks.references import read_references
from lbr2pgo.program.code.decode import text
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, placed_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass

_ADDRESS = re.compile(r"-?0x[0-9a-f]+(?=\(%rip\))|0x[0-9a-f]{5,}")
"""What operands tell of where code and data lie."""
_PASSES = re.compile(r"(?:c\.)?nop|endbr64|int3|bti|data16")
"""Instructions that tell nothing of what a block does."""
_LOCAL_NUMBER = re.compile(r"(/[^/]+)?/\d+$")
"""What BOLT puts behind the name of a local function."""


def plain_name(name: str) -> str:
    """What fdata calls a function, without what tells it from others of its name."""
    return without_unique_suffix(_LOCAL_NUMBER.sub("", name))


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A call, or a jump to another function."""

    offset: int
    """Of its instruction, in the function."""
    callee: str
    """Empty where it is told at run time."""


@dataclass(frozen=True)
class BlockCode:
    """A block of a function."""

    first: int
    last: int
    """Offsets of its first and last instruction."""
    words: tuple[str, ...]
    """Its instructions with their operands, without addresses and jumps."""
    opcodes: Counter[str]
    """How often it has each instruction, whatever its operands, and each callee."""
    calls: tuple[CodeCall, ...]
    successors: tuple[int, ...]
    """Numbers of the blocks that control may pass to, in ascending order."""
    jumps: dict[int, int]
    """Of those that a branch of its own leads to, the offset of that branch."""
    is_indirect: bool
    """Whether it ends in an indirect jump."""

    @cached_property
    def loose(self) -> tuple[str, ...]:
        """Its instructions alone."""
        return tuple(word.partition(" ")[0] for word in self.words)

    def likeness(self, other: BlockCode) -> float:
        """Share of what two blocks have in common, from 0 to 1."""
        if self.words == other.words:
            return 1.0
        total = self.opcodes.total() + other.opcodes.total()
        return 2 * (self.opcodes & other.opcodes).total() / total if total else 1.0


@dataclass(frozen=True)
class FunctionCode:
    """The blocks of a function, as they lie in it."""

    name: str
    blocks: tuple[BlockCode, ...]
    tables: tuple[tuple[int, ...], ...]
    """Blocks that jumps through tables lead to, by table, in the order of its entries."""

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Of each block, those that control may come from."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for to in block.successors:
                found[to].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def opcodes(self) -> Counter[str]:
        """Those of all blocks."""
        total: Counter[str] = Counter()
        for block in self.blocks:
            total.update(block.opcodes)
        return total

    def block_at(self, offset: int) -> int:
        """The block that holds an instruction, -1 for none."""
        number = int(np.searchsorted(self._first, offset, "right")) - 1
        return number if number >= 0 and offset <= self.blocks[number].last else -1

    @cached_property
    def _first(self) -> I64:
        return np.array([block.first for block in self.blocks], np.int64)


class ProgramCode:
    """Functions of a program, cut into blocks; those that are asked for are read as words."""

    def __init__(self, program: Program, functions: BinaryFunctions, chosen: Sequence[int]) -> None:
        """Of these functions, by their numbers."""
        self.functions = functions
        starts = placed_addresses(functions.start[np.array(chosen, np.int64)])
        self._context = analyze(program, starts, keep_all=True)
        self._image = program.image
        code = self._context.code
        callee = np.where(code.has_target, functions.containing(code.target), -1)
        self._callees = callee.tolist()
        self._cases = self._tables(program)
        self._labels = self._stored_labels(program)

    def shape(self, function: int) -> tuple[object, ...]:
        """What is the same of a function that control flows through as before, byte by byte.

        Sizes and kinds of its instructions, where its branches lead, and whom it calls.
        """
        code, rows = self._context.code, self._rows(function)
        start, end = (
            int(column[function]) for column in (self.functions.start, self.functions.end)
        )
        direct = code.branches()[rows]
        target = code.target[rows][direct]
        is_local = (target >= start) & (target < end)
        return (
            code.size[rows].tobytes(),
            code.kind[rows].tobytes(),
            (target[is_local] - start).tobytes(),
            tuple(map(self._callee, (rows.start + np.flatnonzero(direct)[~is_local]).tolist())),
        )

    def function(self, function: int) -> FunctionCode:
        """A function with its blocks; none where it could not be disassembled."""
        blocks = self._context.blocks
        own = slice(*np.searchsorted(blocks.function, [function, function + 1]).tolist())
        starts = blocks.start[own]
        end = int(self.functions.end[function])
        found = text(self._image, self.functions.start[function], end)
        texts = {address: words for address, _, words in found}
        made = tuple(self._block(row, starts, texts) for row in range(own.start, own.stop))
        tables = [self._cases[to] for to in blocks.last[own].tolist() if to in self._cases]
        tables += filter(None, [self._labels.get(function, [])])
        places = (tuple(_place(starts, to) for to in table) for table in tables)
        return FunctionCode(
            self.functions.name(function),
            made,
            tuple(tuple(number for number in table if number >= 0) for table in places),
        )

    def _rows(self, function: int) -> slice:
        code = self._context.code
        return slice(*np.searchsorted(code.function, [function, function + 1]).tolist())

    def _block(self, row: int, starts: ImageAddresses, texts: dict[int, str]) -> BlockCode:
        code, blocks = self._context.code, self._context.blocks
        start = int(self.functions.start[blocks.function[row]])
        first, last = code.at(placed_addresses(np.array([blocks.start[row], blocks.last[row]])))
        words, opcodes, calls = [], Counter[str](), []
        successors, jumps = set[int](), dict[int, int]()
        for i in range(int(first), int(last) + 1):
            address, kind = int(code.address[i]), Kind(int(code.kind[i]))
            target = int(code.target[i]) if code.has_target[i] else 0
            to = _place(starts, target) if kind not in CALLS else -1
            if to >= 0:
                successors.add(to)
                jumps[to] = address - start
            is_call = kind in CALLS or (to < 0 and kind in (Kind.JUMP, Kind.COND))
            if is_call:
                calls.append(CodeCall(address - start, self._callee(i)))
            said = " ".join(texts.get(address, "").split())
            if kind in (Kind.JUMP, Kind.COND) or _PASSES.match(said):
                continue
            word = f"call {calls[-1].callee}" if is_call else said
            words.append(_ADDRESS.sub("", word))
            opcodes[said.partition(" ")[0]] += 1
            if is_call:
                opcodes[word] += 1
        if blocks.falls[row]:
            successors.add(_place(starts, int(blocks.start[row + 1])))
        is_indirect = bool(code.kind[last] == Kind.INDIRECT_JUMP)
        if is_indirect:
            labels = self._labels.get(int(blocks.function[row]), [])
            targets = self._cases.get(int(blocks.last[row]), labels)
            successors.update(to for each in targets if (to := _place(starts, each)) >= 0)
        return BlockCode(
            int(blocks.start[row]) - start, int(blocks.last[row]) - start, tuple(words), opcodes,
            tuple(calls), tuple(sorted(successors)), jumps, is_indirect,
        )  # fmt: skip

    def _tables(self, program: Program) -> dict[int, list[int]]:
        """Where each jump through a table leads, entry by entry."""
        image, found = program.image, dict[int, list[int]]()
        references, idioms = read_references(image), idioms_of(image)
        entries = table_entries(image, self._context.code, references, idioms)
        for jump, to in zip(entries.jump.tolist(), entries.target.tolist(), strict=True):
            found.setdefault(jump, []).append(to)
        return found

    def _stored_labels(self, program: Program) -> dict[int, list[int]]:
        """Addresses in each function that data holds, such as C's `&&label`."""
        labels, found = labels_in_order(program.image), dict[int, list[int]]()
        function = self.functions.containing(labels)
        for row in np.flatnonzero((function >= 0) & (labels != self.functions.start[function])):
            found.setdefault(int(function[row]), []).append(int(labels[row]))
        return found

    def _callee(self, row: int) -> str:
        """Whom an instruction calls; empty where it does not tell."""
        callee = self._callees[row]
        return plain_name(self.functions.names[callee]) if callee >= 0 else ""


def _place(starts: ImageAddresses, address: int) -> int:
    """Number of the block that begins at an address, -1 for none."""
    at = int(np.searchsorted(starts, np.uint64(address)))
    return at if at < len(starts) and int(starts[at]) == address else -1
