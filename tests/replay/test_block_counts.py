from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.flows import Trace, flow_of

from lbr2pgo.program.code.cfg import EdgeKind, FunctionCFG
from lbr2pgo.replay.block_counts import BlockCounts, count_blocks

BASE = 0x2000
CODE = bytes.fromhex(
    "90"  # 0 nop          head
    "90"  # 1 nop
    "7403"  # 2 je 7       to the exit
    "90"  # 4 nop          body
    "ebf9"  # 5 jmp 0      back to the head
    "c3"  # 7 ret          exit
)
F = Function("f", BASE, len(CODE))
HEAD, BODY, EXIT = 0, 4, 7


def counted(where: Path, *traces: Trace) -> tuple[FunctionCFG, BlockCounts]:
    flow, program = flow_of(where, CODE, BASE, traces, [F])
    cfg = program.cfg(0)
    return cfg, count_blocks(flow, cfg)


def blocks(cfg: FunctionCFG, counts: BlockCounts) -> dict[int, int]:
    return dict(
        zip((cfg.block_start - np.uint64(BASE)).tolist(), counts.block.tolist(), strict=True)
    )


def edges(cfg: FunctionCFG, counts: BlockCounts) -> dict[tuple[int, int], int]:
    start = (cfg.block_start - np.uint64(BASE)).astype(int)
    rows = zip(cfg.edge_source, cfg.edge_target, counts.edge, strict=True)
    return {(int(start[s]), int(start[t])): int(count) for s, t, count in rows}


def test_a_loop_of_five_rounds_with_one_exit(tmp_path: Path) -> None:
    """Five times round, then out: the jump ends five runs, the branch one."""
    cfg, counts = counted(tmp_path, (5, 0, 5, 5), (5, 0, 2, 1), (2, 7, 7, 1))
    assert blocks(cfg, counts) == {HEAD: 6, BODY: 5, EXIT: 1}
    assert edges(cfg, counts) == {(HEAD, EXIT): 1, (HEAD, BODY): 5, (BODY, HEAD): 6}


def test_a_fall_through_is_what_runs_past_the_end_of_its_block(tmp_path: Path) -> None:
    cfg, counts = counted(tmp_path, (None, 0, 5, 3), (None, 0, 2, 4))
    falls = cfg.edge_kind == EdgeKind.FALLTHROUGH
    assert counts.edge[falls].tolist() == [3]
    assert blocks(cfg, counts)[HEAD] == 7


def test_what_never_ran_counts_nothing(tmp_path: Path) -> None:
    cfg, counts = counted(tmp_path, (None, 7, 7, 2))
    assert blocks(cfg, counts) == {HEAD: 0, BODY: 0, EXIT: 2}
    assert not counts.edge.any()


@pytest.mark.parametrize("count", [1, 2**40])
def test_counts_stay_exact(tmp_path: Path, count: int) -> None:
    cfg, counts = counted(tmp_path, (5, 0, 5, count))
    assert edges(cfg, counts)[BODY, HEAD] == count


def test_the_first_block_may_be_one_instruction(tmp_path: Path) -> None:
    flow, program = flow_of(tmp_path, bytes.fromhex("ebfe"), BASE, [(0, 0, 0, 5)], [F])
    cfg = program.cfg(0)
    assert blocks(cfg, count_blocks(flow, cfg)) == {0: 5}
