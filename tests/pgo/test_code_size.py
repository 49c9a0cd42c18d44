from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.model.exact_counts import ExactCounts, Totals
from lbr2pgo.pgo.code_size import code_size
from lbr2pgo.program.elf.image import Image

INTERP = Path(__file__).parents[2] / "testbins" / "x86-64" / "interp.static"


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., Path]:
    """`counted((from, to, count, taken), …)`: exact counts of the interpreter."""

    def make(*rows: tuple[int, int, int, bool]) -> Path:
        from_, to, count, taken = (np.array(column) for column in zip(*rows, strict=True))
        same = np.zeros(len(rows))
        columns = {
            "from_image": same, "from": from_, "to_image": same, "to": to, "taken": taken,
            "kind": same, "count": count, "mispredicted": same,
        }  # fmt: skip
        build_id = Image.open(INTERP).build_id
        path = tmp_path / "run.exact"
        ExactCounts.from_rows(columns, [str(INTERP)], [build_id], Totals()).save(path)
        return path

    return make


def test_the_size_is_that_of_all_sections_of_code(
    counted: Callable[..., Path], tool: Callable[[str], str]
) -> None:
    rows = subprocess.run(
        [tool("readelf"), "-SW", INTERP], check=True, capture_output=True, text=True
    ).stdout
    sizes = re.findall(r"\S+ +PROGBITS +\S+ \S+ (\S+) \S+ +AX ", rows)
    found = code_size(INTERP, counted((0x401000, 0x401000, 1, True)))
    assert found is not None
    assert found.text == sum(int(size, 16) for size in sizes) > 1000


def test_hot_pages_are_the_fewest_that_hold_what_ran(counted: Callable[..., Path]) -> None:
    one = (0x401010, 0x401FF0, 1000, True)
    not_taken = (0x402010, 0x403000, 1000, False)
    cold = (0x404000, 0x405000, 10, True)
    other = (0x401010, 0x402000, 500, True)
    runs = ((one,), (one, not_taken), (one, other), (one, cold))
    found = [code_size(INTERP, counted(*rows)) for rows in runs]
    assert [each and each.hot_pages for each in found] == [1, 2, 2, 1]


def test_of_a_script_nothing_is_known(tmp_path: Path, counted: Callable[..., Path]) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert code_size(script, counted((0x401000, 0x401000, 1, True))) is None
