"""Recordings that don't name what was recorded, beside another program."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.elf import Function
from builders.flows import flow_of

from lbr2pgo.replay.contradicted import contradicted


@pytest.mark.parametrize(
    ("elsewhere", "own", "is_doubted"), [(51, 49, True), (50, 50, False), (51, 48, False)]
)
def test_a_hundred_branches_of_which_more_than_half_are_none_make_a_doubt(
    elsewhere: int, own: int, is_doubted: bool, tmp_path: Path
) -> None:
    """`nop; je 0; jmp 0; je 0; ret`: no instruction begins at 2, and the branch at 1 leads to 0."""
    code = bytes.fromhex("9074fdebfb74f9c3")
    traces = [(2, 0, 1, elsewhere // 2), (1, 4, None, elsewhere - elsewhere // 2), (1, 0, 1, own)]
    flow, _ = flow_of(tmp_path, code, 0x2000, traces, [Function("f", 0x2000, len(code))])
    assert (contradicted(flow) is not None) == is_doubted
