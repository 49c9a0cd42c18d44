"""Listings of a stack, an entry a line: which they are, and in which order they were printed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from lbr2pgo.sources.perf_script.listing import Order, order_of_listing
from lbr2pgo.sources.perf_script.reader import PerfScript

# A loop of three branches: time goes down.
ROUND = [(0x1010, 0x1020), (0x1028, 0x1040), (0x1050, 0x1000)]
TWO_ROUNDS = [(*ends, cycles) for cycles, ends in enumerate(ROUND * 2, 1)]


def printed(entries: list[tuple[int, int, int]]) -> str:
    return "".join(f"{a:#x}/{b:#x}/P/-/-/{cycles}\n" for a, b, cycles in entries)


def stacks(path: Path, text: str, chunk_size: int = 1 << 20) -> list[list[int]]:
    path.write_text(text)
    (batch,) = PerfScript(path, chunk_size).batches()
    cuts = batch.offsets.tolist()
    cycles = (batch.flags >> 4 & 0xFFFF).tolist()
    return [cycles[a:b] for a, b in pairwise(cuts)]


@pytest.mark.parametrize("chunk_size", [64, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        printed(TWO_ROUNDS),
        f"...\n{printed(TWO_ROUNDS)}...\n",
        printed(TWO_ROUNDS[::-1]),
        printed(TWO_ROUNDS).replace("\n", "\r\n"),
    ],
    ids=["oldest-first", "left-out", "newest-first", "dos"],
)
def test_a_listing_is_one_stack_the_newest_first(
    tmp_path: Path, text: str, chunk_size: int
) -> None:
    assert stacks(tmp_path / "p.txt", text, chunk_size) == [[6, 5, 4, 3, 2, 1]]


def test_a_listing_is_cut_where_a_line_does_not_follow(tmp_path: Path) -> None:
    elsewhere = [(a + 0x90000, b + 0x90000, 6 + c) for a, b, c in TWO_ROUNDS]
    text = printed([*TWO_ROUNDS, *elsewhere])
    assert stacks(tmp_path / "p.txt", text) == [[6, 5, 4, 3, 2, 1], [12, 11, 10, 9, 8, 7]]


def test_the_order_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text(printed(TWO_ROUNDS[::-1]))
    source = PerfScript(path)
    list(source.batches())
    assert source.health()["stacks that were listed an entry a line, newest first"] == 1


def test_time_goes_down_where_both_orders_would_do() -> None:
    assert order_of_listing(b"0x1010/0x1000/P/-/-/3\n" * 5) is Order.OLDEST_FIRST


@pytest.mark.parametrize(
    "text",
    [
        b"0x1010/0x1020/P/-/-/1\n",
        b"0x1010/0x9020000/P/-/-/1\n0x5500000/0x1040/P/-/-/1\n0x2200000/0x10/P/-/-/1\n",
        b"0x1010/0x1020/P/-/-/1 0x1/0x2/P/-/-/1\n" * 3,
        b" 7 1.5: 1010 0x1010/0x1000/P/-/-/3\n" * 3,
        b"",
    ],
    ids=["one", "samples-of-one", "stacks", "with-more", "none"],
)
def test_other_text_is_no_listing(text: bytes) -> None:
    assert order_of_listing(text) is None
