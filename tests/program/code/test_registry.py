"""Architectures: each is one record, and one that is not there is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Link
from builders.recordings import TESTBINS

from lbr2pgo.cli import main
from lbr2pgo.program.blocks.binary_context import IDIOMS
from lbr2pgo.program.code import registry
from lbr2pgo.program.code.aarch64 import AARCH64
from lbr2pgo.program.code.architecture import Architecture
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.elf.image import Image
from lbr2pgo.recorders.guest import EMULATED
from lbr2pgo.support.addresses import ByteRanges
from lbr2pgo.support.errors import InputError

PARTS: dict[str, Callable[[Architecture], bool]] = {
    "what BOLT looks for (program/blocks/binary_context.py, IDIOMS)": lambda each: (
        each.name in IDIOMS
    ),
    "how it is emulated (recorders/guest.py, EMULATED)": lambda each: each.name in EMULATED,
    "programs (testbins/NAME)": lambda each: (TESTBINS / each.name).is_dir(),
    "recordings (testbins/recordings/NAME-…)": lambda each: bool(
        [*(TESTBINS / "recordings").glob(f"{each.name}-*.perf.data")]
    ),
    "exact counts (testbins/recordings/NAME-…)": lambda each: bool(
        [*(TESTBINS / "recordings").glob(f"{each.name}-*.exact.npz")]
    ),
    "its name in docs/formats.md": lambda each: (
        each.name.lower() in (TESTBINS.parent / "docs" / "formats.md").read_text().lower()
    ),
}
"""What an architecture has in other rooms, and whether it is there."""

MACHINE = 18
"""Where the ELF header says `e_machine`."""
UNKNOWN = 0xFEED


def for_machine(number: int, program: Path, target: Path) -> Path:
    data = bytearray(program.read_bytes())
    data[MACHINE : MACHINE + 2] = number.to_bytes(2, "little")
    target.write_bytes(data)
    return target


def test_each_name_and_number_stands_for_one_architecture() -> None:
    every = registry.ARCHITECTURES
    names = [name for each in every for name in {each.name, *each.uname}]
    assert len(set(names)) == len(names)
    assert len({each.elf_machine for each in every}) == len(every)
    for each in every:
        assert registry.named(each.name) is each
        assert registry.of_elf_machine(each.elf_machine, where="") is each
        assert {registry.by_uname(name) for name in each.uname} == {each}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("each", registry.ARCHITECTURES, ids=lambda each: each.name)
def test_every_part_of_an_architecture_is_there(each: Architecture, part: str) -> None:
    assert PARTS[part](each), f"{each.name} lacks {part}"


def test_an_architecture_without_anything_lacks_every_part() -> None:
    other = replace(AARCH64, name="vax", elf_machine=UNKNOWN, uname=())
    assert not [part for part, is_there in PARTS.items() if is_there(other)]


def test_what_uname_says_of_others_is_not_known() -> None:
    assert registry.by_uname("vax") is None
    assert registry.by_uname(None) is None


def test_a_program_of_another_architecture_is_refused(
    link: Link, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = for_machine(UNKNOWN, link("_start: ret\n"), tmp_path / "other")
    with pytest.raises(InputError, match=f"machine number {UNKNOWN}") as caught:
        Image.open(program)
    assert caught.value.where == str(program)
    (tmp_path / "profile").write_text("B 1000 1000 1 0\n")
    arguments = ["convert", str(tmp_path / "profile"), "--binary", str(program)]
    assert main(arguments) == 2
    assert f"machine number {UNKNOWN}" in capsys.readouterr().err


def test_one_that_is_registered_is_read_by_its_own_record(
    link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_bytes_each(data: np.ndarray, bounds: list[int]) -> tuple[np.ndarray, np.ndarray]:
        offset = np.arange(bounds[0], bounds[-1], 2)
        return offset, np.full(len(offset), 2, np.uint8)

    other = replace(AARCH64, name="other", elf_machine=UNKNOWN, uname=(), sweep=two_bytes_each)
    monkeypatch.setattr(registry, "ARCHITECTURES", (*registry.ARCHITECTURES, other))
    image = Image.open(for_machine(UNKNOWN, link("_start: ret\n.zero 7\n"), tmp_path / "other"))
    assert image.architecture is other
    start = next(s.address for s in image.sections if s.is_code)
    table = decode(image, ByteRanges.of([(start, start + 8)]))
    assert table.size.tolist() == [2, 2, 2, 2]
