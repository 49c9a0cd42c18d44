from __future__ import annotations

from pathlib import Path

import pytest
from builders.elf import Function, elf

from lbr2pgo.dumping.labels import BranchLabels
from lbr2pgo.program.program import Program

BASE = 0x401000


@pytest.fixture
def labels(tmp_path: Path) -> BranchLabels:
    (tmp_path / "program").write_bytes(
        elf(b"\x90" * 16 + b"\xc3", BASE, [Function("main", BASE, 8)])
    )
    return BranchLabels(Program.open(tmp_path / "program"))


def test_a_start_has_the_functions_name_and_what_follows_an_offset(labels: BranchLabels) -> None:
    assert labels.of(BASE) == "0x401000 <main>"
    assert labels.of(BASE + 7) == "0x401007 <main+0x7>"


def test_what_is_no_code_is_called_so(labels: BranchLabels) -> None:
    assert labels.name(0x10) == "no code"


def test_several_are_parted_by_commas(labels: BranchLabels) -> None:
    assert labels.all([BASE, BASE + 1]) == "0x401000 <main>, 0x401001 <main+0x1>"
    assert labels.all([]) == ""
