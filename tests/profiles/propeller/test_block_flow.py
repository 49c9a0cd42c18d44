"""Counts on blocks, of a loop in a few bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from builders.elf import Function
from builders.flows import Trace, flow_of

from lbr2pgo.profiles.propeller.block_flow import BlockFit, BlockFlow, block_flow, containing
from lbr2pgo.profiles.propeller.block_layout import Layout, lay_out
from lbr2pgo.program.block_map import BlockMap
from lbr2pgo.support.addresses import image_array

BASE = 0x2000
CODE = bytes.fromhex(
    "90"  # 0 nop          head
    "90"  # 1 nop
    "7403"  # 2 je 7       to the exit
    "90"  # 4 nop          body
    "ebf9"  # 5 jmp 0      back to the head
    "c3"  # 7 ret          exit
    "e8f3ffffff"  # 8 call 0      another function
    "c3"  # 13 ret
)
SYMBOLS = [Function("f", BASE, 8), Function("g", BASE + 8, 6)]
Block = tuple[int, int, int]
"""Function, id, size; blocks stand one behind the other."""
BLOCKS: list[Block] = [(0, 0, 0), (0, 3, 4), (0, 1, 3), (0, 2, 1), (1, 0, 6)]
"""An entry without instructions, the head, the body, the exit; and all of the caller."""


def block_map(blocks: list[Block] = BLOCKS) -> BlockMap:
    function, identity, size = (np.array(column) for column in zip(*blocks, strict=True))
    start = BASE + np.cumsum(size) - size
    first = [int(start[function == number][0]) for number in sorted(set(function.tolist()))]
    none = np.zeros(len(blocks), np.uint64)
    return BlockMap(
        function, identity, image_array(start.tolist()), size.astype(np.uint64),
        none.astype(np.uint8), none, image_array(first), "here",
    )  # fmt: skip


def counted(where: Path, *traces: Trace) -> BlockFlow:
    flow, _ = flow_of(where, CODE, BASE, traces, SYMBOLS)
    return block_flow(flow, block_map())


def laid(where: Path, *traces: Trace) -> Layout:
    flow, _ = flow_of(where, CODE, BASE, traces, SYMBOLS)
    blocks = block_map()
    return lay_out(flow, blocks, block_flow(flow, blocks))


def edges(found: BlockFlow) -> dict[tuple[int, int], int]:
    columns = (found.edges.source, found.edges.target, found.edges.count)
    return {(a, b): n for a, b, n in zip(*(column.tolist() for column in columns), strict=True)}


def test_a_jump_is_an_edge_and_a_run_falls_over_every_border(tmp_path: Path) -> None:
    """Called once, five times round, then out."""
    found = counted(tmp_path, (8, 0, 5, 1), (5, 0, 5, 4), (5, 0, 2, 1), (2, 7, 7, 1))
    assert edges(found) == {(0, 1): 6, (1, 2): 5, (2, 1): 5, (1, 3): 1}
    assert found.count.tolist() == [6, 11, 5, 1, 0]
    assert found.fit == BlockFit(jumps=6, at_ends=6, to_starts=6)


def test_a_run_goes_over_padding_before_an_aligned_block(tmp_path: Path) -> None:
    """The first instruction belongs to no block: the compiler aligned what follows."""
    flow, _ = flow_of(tmp_path, CODE, BASE, [(None, 0, 5, 3)], SYMBOLS)
    blocks = block_map([(0, 0, 1), (0, 1, 1), (0, 2, 2), (0, 3, 3), (0, 4, 1), (1, 0, 6)])
    rows = np.array([0, 2, 3, 4, 5])
    columns = ("function", "identity", "start", "size", "metadata", "hash")
    padded = replace(blocks, **{name: getattr(blocks, name)[rows] for name in columns})
    assert edges(block_flow(flow, padded)) == {(0, 1): 3, (1, 2): 3}


def test_a_call_that_ends_its_block_goes_on_to_where_it_returned(tmp_path: Path) -> None:
    """The call at 8 is a block of its own here, as one that may throw is."""
    flow, _ = flow_of(tmp_path, CODE, BASE, [(8, 0, 2, 5), (7, 13, 13, 4)], SYMBOLS)
    own = block_map([*BLOCKS[:4], (1, 0, 5), (1, 1, 1)])
    assert edges(block_flow(flow, own))[4, 5] == 4
    pad = replace(own, metadata=np.array([0, 0, 0, 0, 0, 4], np.uint8))
    assert (4, 5) not in edges(block_flow(flow, pad))


def test_a_run_from_one_function_into_the_next_is_no_edge(tmp_path: Path) -> None:
    """The exit's return keeps it from being valid in the first place; its border counts nothing."""
    assert (3, 4) not in edges(counted(tmp_path, (2, 7, 13, 9)))


def test_jumps_into_the_middle_of_a_block_are_counted_against_the_map(tmp_path: Path) -> None:
    flow, _ = flow_of(tmp_path, CODE, BASE, [(2, 7, 7, 9), (5, 0, 5, 1)], SYMBOLS)
    found = block_flow(flow, block_map([(0, 0, 8), (1, 0, 6)]))
    assert found.fit == BlockFit(jumps=10, at_ends=0, to_starts=1)
    assert edges(found) == {}


def test_a_block_may_end_with_several_jumps(tmp_path: Path) -> None:
    code = bytes.fromhex("7402eb0190c3")  # je 4; jmp 5; nop; ret
    traces: list[Trace] = [(0, 4, 5, 3), (2, 5, 5, 4)]
    flow, _ = flow_of(tmp_path, code, BASE, traces, [Function("f", BASE, 6)])
    found = block_flow(flow, block_map([(0, 0, 4), (0, 1, 1), (0, 2, 1)]))
    assert found.fit == BlockFit(jumps=7, at_ends=7, to_starts=7)
    found = block_flow(flow, block_map([(0, 0, 3), (0, 1, 2), (0, 2, 1)]))
    assert found.fit == BlockFit(jumps=7, at_ends=0, to_starts=4)


def test_addresses_outside_of_all_blocks_are_in_none() -> None:
    addresses = image_array([BASE - 1, BASE, BASE + 7, BASE + 13, BASE + 14])
    assert containing(addresses, block_map()).tolist() == [-1, 1, 3, 4, -1]


def test_hot_blocks_stand_together_behind_the_entry_and_callers_first(tmp_path: Path) -> None:
    found = laid(tmp_path, (8, 0, 5, 1), (5, 0, 5, 40), (5, 0, 2, 1), (None, 8, 8, 1))
    assert found.function.tolist() == [1, 0]
    assert np.split(found.blocks, found.offsets[1:-1])[0].tolist() == [4]
    assert found.blocks[found.offsets[1] :].tolist() == [0, 1, 2]
    assert found.has_cold.tolist() == [False, True]


def test_nothing_ran_nothing_is_laid_out(tmp_path: Path) -> None:
    assert len(laid(tmp_path, (None, 99, 99, 1))) == 0
