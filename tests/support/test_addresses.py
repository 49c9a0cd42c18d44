"""Kinds of addresses are told apart by the type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import ROOT

from lbr2pgo.support.addresses import (
    ByteRanges,
    file_offsets,
    image_addresses,
    image_array,
    placed,
    placed_addresses,
    runtime_addresses,
    unplaced,
)

SNIPPET = """\
import numpy as np
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.blocks.indirect_jumps import switch_cases
from lbr2pgo.program.code.decode import text
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.program.program import Program
from lbr2pgo.reports.model import GraphBlock
from lbr2pgo.sources.code_addresses import addresses_of_offsets, are_code
from lbr2pgo.support.addresses import *
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.distinct import distinct

def check(
    program: Program, layout: ImageLayout, stacks: BranchStacks, counts: BranchCounts,
    rows: Bools, order: I64, number: U64, block: GraphBlock,
) -> None:
    program.functions.containing(counts.to)  # good
    program.functions.containing(counts.to[rows])  # good
    program.functions.containing(counts.to[order][:-1])  # good
    program.functions.containing(distinct(np.concatenate((counts.to, counts.end))))  # good
    program.functions.containing(image_addresses(counts.to + np.uint64(1)))  # good
    program.functions.containing(counts.to + np.uint64(1))  # bad
    program.functions.containing(stacks.to)  # bad
    program.functions.containing(stacks.to[rows])  # bad
    program.functions.containing(number)  # bad
    program.instructions_for(stacks.ip)  # bad
    are_code(layout, addresses_of_offsets(layout, file_offsets(number))[0])  # good
    addresses_of_offsets(layout, counts.to)  # bad
    text(program.image, layout.segments[0].address, 9)  # good
    text(program.image, layout.segments[0].file_offset, 9)  # bad
    text(program.image, 7, 9)  # bad
    switch_cases(program, counts.to)  # bad
    switch_cases(program, unplaced(counts.to, 2))  # good
    program.functions.containing(placed(counts.to, 2))  # bad
    program.functions.containing(placed(unplaced(counts.to, 1), 2))  # good
    code, address = program.file_of(block.placed_start)
    text(code.image, address, block.placed_end)  # good
    text(code.image, block.placed_start, block.placed_end)  # bad
    program.file_of(address)  # good
    shown(address) + shown(block.placed_start)  # good
    shown(layout.segments[0].file_offset)  # bad
    ImageFacts(layout, skips_leaf=lambda leaves: program.functions.containing(leaves) < 0)  # good
"""


def test_mixing_kinds_of_addresses_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(path)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    found = {int(n) for n in re.findall(r"snippet\.py:(\d+): error: .*arg-type", done.stdout)}
    wrong = {n for n, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# bad")}
    assert found == wrong, done.stdout


def test_nothing_happens_at_run_time() -> None:
    numbers = np.array([1, 2], np.uint64)
    for convert in (runtime_addresses, image_addresses, placed_addresses, file_offsets):
        assert convert(numbers) is numbers
    assert image_array([1, 2]).tolist() == [1, 2]
    assert image_array(()).dtype == np.uint64


def test_a_slot_is_put_in_front_and_taken_away() -> None:
    own = image_array([0, 0x1234, (1 << 48) - 1])
    there = placed(own, 3)
    assert there.tolist() == [address + (3 << 48) for address in own.tolist()]
    assert unplaced(there, 3).tolist() == own.tolist()
    assert placed(own, 0).tolist() == own.tolist()


def test_ranges_are_half_open() -> None:
    ranges = ByteRanges.of([(10, 20), (20, 25), (30, 31)])
    assert ranges.around(image_array([9, 10, 19, 20, 25, 30, 31])).tolist() == [
        -1, 0, 0, 1, -1, 2, -1,
    ]  # fmt: skip
    assert list(ranges.take(np.array([2, 0])).pairs()) == [(30, 31), (10, 20)]
    assert len(ByteRanges.of([])) == 0
    with pytest.raises(ValueError, match="end has shape"):
        ByteRanges(image_array([1, 2]), image_array([3]))
