"""Reports of a program of which one function is damaged: figures of all others stay; it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS
from elftools.elf.elffile import ELFFile
from test_damaged_function import place_of, with_a_hole, without_instructions

from lbr2pgo.cli import main

WHOLE = TESTBINS / "x86-64/interp.pie"
RECORDING = TESTBINS / "recordings/x86-64-interp.pie.perf.data"
NAME = "next_token"
Damage = Callable[[bytearray], None]


def hole(data: bytearray) -> None:
    with_a_hole(data, place_of(WHOLE, NAME), "x86-64")


def no_code(data: bytearray) -> None:
    without_instructions(data, place_of(WHOLE, NAME), "x86-64")


def lines(data: bytearray) -> None:
    """Of the last functions of the program's one unit."""
    with WHOLE.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".debug_line")
        start, size = section["sh_offset"], section["sh_size"]
    data[start + size * 9 // 10 : start + size] = bytes(size - size * 9 // 10)


@pytest.mark.parametrize(("damage", "said"), [
    (hole, "that start or end inside an instruction"),
    (no_code, "that start or end inside an instruction"),
    (lines, "debug information: line tables cut off by damage: 1"),
])  # fmt: skip
def test_others_keep_their_figures(
    damage: Damage, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, damaged, page = bytearray(WHOLE.read_bytes()), tmp_path / WHOLE.name, tmp_path / "page"
    damage(data)
    damaged.write_bytes(data)
    figures, texts = [], []
    for binary in (WHOLE, damaged):
        words = ["report", str(RECORDING), "--binary", str(binary)]
        assert main([*words, "--format", "json", "--top", "0"]) == 0
        answer = capfd.readouterr().out
        figures.append(counts(json.loads(answer)))
        assert main([*words, "--html", str(page)]) == 0
        texts.append((answer, page.read_text(), capfd.readouterr().err))
        assert main(words) == 0
        shown = capfd.readouterr()
        assert "Traceback" not in shown.err
        if damage is lines:
            assert (f"warning: {said}" in shown.out) == (binary == damaged)
    assert {**figures[0], NAME: ()} == {**figures[1], NAME: ()}
    assert len(figures[0]) == 10
    (json_before, page_before, _), (json_after, page_after, _) = texts
    assert (said in json_before, said in page_before) == (False, False)
    assert (said in json_after, said in page_after) == (True, True)


def counts(report: dict[str, list[dict[str, object]]]) -> dict[object, tuple[object, ...]]:
    """What is counted of each function; shares are of all."""
    (table,) = (table for table in report["tables"] if table["name"] == "hot-functions")
    rows: object = table["rows"]
    assert isinstance(rows, list)
    return {row["function"]: (row["branches"], row["mispredicted"]) for row in rows}
