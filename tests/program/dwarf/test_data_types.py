"""Types that no compiler writes, by hand; real programs are in `test_variables`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.dwarf import abbreviation, dwarf, unit, words
from builders.fixtures import Tool

from lbr2pgo.program.dwarf.data_types import DataField, DataTypes
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program

TABLE = (
    abbreviation(1, "compile_unit", children=True)
    + abbreviation(2, "variable", ("type", "ref4"))
    + abbreviation(3, "typedef", ("type", "ref4"))
    + abbreviation(4, "array_type", ("type", "ref4"), children=True)
    + abbreviation(5, "structure_type", ("byte_size", "data1"), children=True)
    + abbreviation(6, "member", ("type", "ref4"), ("data_member_location", "data1"))
    + abbreviation(7, "pointer_type", ("type", "ref4"))
    + abbreviation(8, "subrange_type", ("count", "data4"))
    + b"\0"
)
FIRST = 12
TYPE = FIRST + 5
SELF = words(TYPE, size=4)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (b"\x03" + SELF, -1),
        (b"\x04" + SELF + b"\x08" + words(2, size=4) + b"\0", -1),
        (b"\x05\x10" + b"\x06" + SELF + b"\0" + b"\0", 16),
        (b"\x07" + SELF, 8),
    ],
)
def test_types_that_hold_themselves_end(kind: bytes, size: int) -> None:
    found = dwarf(info=unit(b"\x01" + b"\x02" + SELF + kind + b"\0"), abbrev=TABLE)
    types = DataTypes()
    held = types.of_variable(found, FIRST)
    assert types.size(held) == size
    assert isinstance(types.field(types.element(held), 3), DataField)


def test_sizes_that_no_memory_has_are_not_known() -> None:
    many = b"\x08" + words(0xFFFF_FFFF, size=4)
    pointer = TYPE + 5 + 5 * 8 + 1
    kind = b"\x04" + words(pointer, size=4) + many * 8 + b"\0" + b"\x07" + SELF
    types = DataTypes()
    found = dwarf(info=unit(b"\x01" + b"\x02" + SELF + kind + b"\0"), abbrev=TABLE)
    assert types.size(types.of_variable(found, FIRST)) == -1


def test_of_what_is_one_of_several_variants_nothing_is_said(tmp_path: Path, tool: Tool) -> None:
    """An enumeration of Rust has other fields in each variant."""
    source = """
pub enum Shape { Round(u64), Square { width: u64, height: u64 } }
#[no_mangle]
pub static SHAPES: [Shape; 2] = [Shape::Round(1), Shape::Square { width: 2, height: 3 }];
#[no_mangle] pub static PAIR: (u32, u64) = (1, 2);
fn main() { std::hint::black_box((&SHAPES, &PAIR)); }
"""
    (tmp_path / "a.rs").write_text(source)
    subprocess.run([tool("rustc"), "-g", "-Clinker=cc", "a.rs"], cwd=tmp_path, check=True)
    program = Program.open(tmp_path / "a")
    variables = DebugInfo.open(Image.open(tmp_path / "a")).static_variables()
    told = {}
    for name in ("SHAPES", "PAIR"):
        start = program.address_of(name)
        assert start is not None
        number, fields = variables.fields(np.arange(start, start + 16, dtype=np.uint64))
        told[name] = {fields[each] for each in number.tolist()}
    assert told["SHAPES"] == {DataField("Shape", "")}
    assert {field.field for field in told["PAIR"]} >= {"__0", "__1"}
