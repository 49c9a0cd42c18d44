"""Where the edges of a function are, in a later form of it that control flows through otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property

from lbr2pgo.profiles.carried.account import Way
from lbr2pgo.profiles.carried.block_match import block_match
from lbr2pgo.profiles.carried.edge_paths import Edge, EdgeCount, MovedEdges, moved_edges
from lbr2pgo.program.blocks.function_code import BlockCode, FunctionCode
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True)
class ChangedCode:
    """A function in two builds."""

    old: FunctionCode
    new: FunctionCode
    renamed: Mapping[str, str]
    """Callees that have another name in the new build."""

    @cached_property
    def blocks(self) -> Mapping[int, int]:
        """What has become of blocks, by number."""
        return block_match(self.old, self.new)

    def way(self, offset: int) -> Way:
        """How sure it is where the block that holds an instruction is."""
        block = self.old.block_at(offset)
        there = self.blocks.get(block)
        if there is None:
            return Way.CHANGED
        is_alike = self.old.blocks[block].words == self.new.blocks[there].words
        return Way.PLACE if is_alike else Way.CHANGED

    def arrival(self, offset: int) -> int | None:
        """Where control arrives now that arrived at an instruction: at the start of its block."""
        there = self.blocks.get(self.old.block_at(offset))
        return None if there is None else self.new.blocks[there].first

    def is_call(self, offset: int) -> bool:
        """Whether an instruction calls, or jumps to another function."""
        before, _ = self._blocks_at(offset)
        return before is not None and any(call.offset == offset for call in before.calls)

    def edge(self, source: int, target: int) -> Edge:
        """Blocks of two instructions, between which control passed within the function."""
        return self.old.block_at(source), self.old.block_at(target)

    def idle(self, ran: Set[int], unused: Set[str]) -> frozenset[int]:
        """Blocks of the new function that do not run: those that did not, of the old ones that ran.

        New ones don't that call functions which were `unused`.
        """
        added = set(range(len(self.new.blocks))).difference(self.blocks.values())
        calling = {
            block
            for block in added
            if any(call.callee in unused for call in self.new.blocks[block].calls)
        }
        return frozenset(to for block, to in self.blocks.items() if block not in ran) | calling

    def moved(self, edges: Mapping[Edge, EdgeCount], idle: Set[int]) -> MovedEdges:
        """The edges within the function, where they are now; none leads through `idle` blocks."""
        return moved_edges(edges, self.old, self.new, self.blocks, idle)

    def offsets(self, edge: Edge) -> tuple[int, int]:
        """Of an edge of the new function: where control leaves, and where it arrives."""
        source, target = (self.new.blocks[block] for block in edge)
        return source.jumps.get(edge[1], source.last), target.first

    def leaving(self, offset: int) -> int | None:
        """The call, or the jump to another function, that is made in place of one."""
        before, after = self._blocks_at(offset)
        calls = () if before is None else before.calls
        callee = next((call.callee for call in calls if call.offset == offset), None)
        if before is None or after is None:
            return self._only_call(callee)
        if callee is None:
            return after.last if before.is_indirect and after.is_indirect else None
        mine = [call.offset for call in before.calls if call.callee == callee]
        now = self._now(callee)
        theirs = [call.offset for call in after.calls if call.callee == now]
        place = mine.index(offset)
        return theirs[place] if place < len(theirs) else self._only_call(callee)

    def _only_call(self, callee: str | None) -> int | None:
        """The only call of a function, if there is just one in either build."""
        if not callee:
            return None
        before, after = (
            [call.offset for block in code.blocks for call in block.calls if call.callee == name]
            for code, name in ((self.old, callee), (self.new, self._now(callee)))
        )
        return after[0] if len(before) == len(after) == 1 else None

    def _now(self, callee: str) -> str:
        return self.renamed.get(callee, callee)

    def _blocks_at(self, offset: int) -> tuple[BlockCode | None, BlockCode | None]:
        """The block that holds an instruction, and what has become of it."""
        block = self.old.block_at(offset)
        there = self.blocks.get(block)
        return (
            self.old.blocks[block] if block >= 0 else None,
            None if there is None else self.new.blocks[there],
        )
