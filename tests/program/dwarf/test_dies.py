"""Dies and what they refer to, by hand; real programs are in `test_variables`."""

from __future__ import annotations

import numpy as np
from builders.dwarf import abbreviation, dwarf, in_memory, unit, words

from lbr2pgo.program.dwarf.dies import Dies
from lbr2pgo.program.dwarf.unit import Dwarf

TABLE = (
    abbreviation(1, "type_unit", children=True)
    + abbreviation(2, "structure_type", ("name", "string"), ("byte_size", "data1"))
    + abbreviation(3, "structure_type", ("signature", "ref_sig8"))
    + abbreviation(4, "member", ("type", "ref_addr"))
    + abbreviation(5, "member", ("type", "ref_sup4"))
    + abbreviation(6, "member", ("type", "ref_sig8"))
    + abbreviation(7, "variable", ("specification", "ref_addr"))
    + b"\0"
)
SIGNATURE = 0xFEED_FACE_0123_4567
HEADER = 12 + 8 + 4
TYPE = b"\x02" + b"whole\0" + b"\x28"
TYPES = unit(
    b"\x01" + TYPE + b"\0", version=5, kind=2,
    rest=words(SIGNATURE) + words(HEADER + 1, size=4),
)  # fmt: skip
FIRST = len(TYPES) + 12


def read(dies: bytes, **more: Dwarf) -> Dwarf:
    return dwarf(info=TYPES + unit(dies, version=5), abbrev=TABLE, **more)


def names(found: Dwarf, offset: int = FIRST) -> list[str]:
    entries = Dies()
    (entry,) = entries.at(found, offset)
    return [each.name for each in entries.type_of(entry)]


def test_a_type_may_be_in_another_unit_and_have_a_signature() -> None:
    assert names(read(b"\x04" + words(HEADER + 1, size=4))) == ["whole"]
    assert names(read(b"\x06" + words(SIGNATURE))) == ["whole"]
    assert names(read(b"\x06" + words(SIGNATURE + 1))) == []


def test_what_is_only_declared_here_is_taken_from_its_own_unit() -> None:
    dies = b"\x04" + words(FIRST + 5, size=4) + b"\x03" + words(SIGNATURE)
    assert names(read(dies)) == ["whole"]


def test_a_type_may_be_in_the_supplementary_file() -> None:
    reference = b"\x05" + words(HEADER + 1, size=4)
    assert names(read(reference, supplement=dwarf(info=TYPES, abbrev=TABLE))) == ["whole"]
    assert names(read(reference)) == []


def test_an_entry_that_completes_another_has_its_type() -> None:
    dies = b"\x07" + words(FIRST + 5, size=4) + b"\x06" + words(SIGNATURE)
    assert names(read(dies)) == ["whole"]
    itself = b"\x07" + words(FIRST, size=4)
    assert names(read(itself)) == []


def test_units_of_types_in_packages_are_not_read() -> None:
    sections = {"info": TYPES + unit(b"\x06" + words(SIGNATURE), version=5), "abbrev": TABLE}
    packed = Dwarf("by hand", in_memory(sections), package=np.array([[len(TYPES), 0, 0, 0]]))
    assert names(packed) == []


def test_where_no_unit_is_there_is_no_entry() -> None:
    assert Dies().at(read(b"\0"), 1 << 40) == ()
