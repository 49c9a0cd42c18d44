"""Damage of one function's code loses what that function has, and no other's, and is told."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS
from builders.outputs import held, outputs
from elftools.elf.elffile import ELFFile

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile

NO_INSTRUCTION = {"x86-64": b"\x06", "aarch64": bytes(4), "riscv64": bytes(2)}
NOP = {"x86-64": b"\x90", "aarch64": b"\x1f\x20\x03\xd5", "riscv64": b"\x01\x00"}
NAMES = ("run", "walk", "compile_expression", "next_token", "main")
"""Functions that all of the interpreters ran."""


@dataclass(frozen=True)
class Place:
    """Where a function stands in a file: its code, and its symbol's size."""

    code: int
    size: int
    size_at: int


def place_of(binary: Path, name: str) -> Place:
    with binary.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".symtab")
        number, symbol = next(
            (i, s) for i, s in enumerate(symbols.iter_symbols()) if s.name == name
        )
        start, size = symbol["st_value"], symbol["st_size"]
        (at,) = elf.address_offsets(start, size)
        return Place(at, size, symbols["sh_offset"] + 24 * number + 16)


Damage = Callable[[bytearray, Place, str], None]


def fill(data: bytearray, start: int, size: int, word: bytes) -> None:
    data[start : start + size] = (word * size)[:size]


def without_instructions(data: bytearray, at: Place, machine: str) -> None:
    fill(data, at.code, at.size, NO_INSTRUCTION[machine])


def with_a_hole(data: bytearray, at: Place, machine: str) -> None:
    """A third of it, on borders of instructions where these are of one size."""
    third = at.size // 12 * 4
    fill(data, at.code + third, third, NO_INSTRUCTION[machine])


def with_other_instructions(data: bytearray, at: Place, machine: str) -> None:
    """None of them branches."""
    fill(data, at.code, at.size, NOP[machine])


def with_half_its_size(data: bytearray, at: Place, machine: str) -> None:
    """The symbol says so."""
    del machine
    data[at.size_at : at.size_at + 8] = struct.pack("<Q", at.size // 2)


def without_a_size(data: bytearray, at: Place, machine: str) -> None:
    """It ends where the next one begins: nothing is lost."""
    del machine
    data[at.size_at : at.size_at + 8] = bytes(8)


OTHER_CODE = (with_a_hole, with_other_instructions, with_half_its_size)
"""Damages after which branches may start where others than branches stand."""
TOLD = ("runs_valid/", "runs_in_function/", "branches_in_image/astray")


def converted(machine: str, binary: Path, folder: Path) -> Conversion:
    made = outputs(llvm=folder / "out.prof", fdata=folder / "out.fdata")
    recording = TESTBINS / "recordings" / f"{machine}-interp.pie.perf.data"
    return convert(ConvertOptions((recording,), binary, outputs=made))


def fdata(path: Path, name: str) -> tuple[list[str], list[str]]:
    """Rows that neither start nor end in a function, and those that do."""
    rows: tuple[list[str], list[str]] = [], []
    for row in path.read_text().splitlines():
        rows[name in {word.split("/")[0] for word in row.split()[1:5:3]}].append(row)
    return rows


def samples(path: Path) -> dict[str, FunctionSamples]:
    profile = held(path)
    assert isinstance(profile, SampleProfile)
    return dict(profile.functions)


@pytest.mark.parametrize("machine", NOP)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", [without_instructions, *OTHER_CODE, without_a_size])
def test_others_keep_all_that_they_have(
    machine: str, name: str, damage: Damage, tmp_path: Path
) -> None:
    whole, damaged = TESTBINS / machine / "interp.pie", tmp_path / "interp.pie"
    data = bytearray(whole.read_bytes())
    damage(data, place_of(whole, name), machine)
    damaged.write_bytes(data)
    folders = tmp_path / "whole", tmp_path / "damaged"
    for folder in folders:
        folder.mkdir()
    before, after = (
        converted(machine, binary, folder)
        for binary, folder in zip((whole, damaged), folders, strict=True)
    )
    (rows, own_rows), (rows_left, own_rows_left) = (fdata(f / "out.fdata", name) for f in folders)
    assert rows_left == rows != []
    kept, found = (samples(folder / "out.prof") for folder in folders)
    own, own_left = kept.pop(name), found.pop(name, None)
    if damage in OTHER_CODE:
        without_lost_heads(kept, found)
    assert found == kept != {}
    more = {key for key, count in after.tallies.items() if count > before.tallies.get(key, 0)}
    is_told = any(key.startswith(TOLD) for key in more)
    if (own_rows, own) == (own_rows_left, own_left):
        assert damage is without_a_size or name == "main", "what did not run is no loss"
    else:
        assert is_told, more


def without_lost_heads(kept: dict[str, FunctionSamples], found: dict[str, FunctionSamples]) -> None:
    """What is no branch entered no function: its callees were entered less often."""
    for name, function in found.items():
        assert function.head <= kept[name].head
        function.head = kept[name].head
