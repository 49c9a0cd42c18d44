from __future__ import annotations

from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.support.addresses import FileOffset, ImageAddress

# File offsets, image addresses and sizes all differ, and code and data share a page of the file.
CODE = Segment(ImageAddress(0x401000), FileOffset(0x1000), 0x234, 0x234, executable=True)
DATA = Segment(ImageAddress(0x602000), FileOffset(0x1200), 0x100, 0x900, executable=False)
LAYOUT = ImageLayout("a.out", None, "x86-64", is_pie=False, segments=(CODE, DATA))


def address_of(offset: int) -> int | None:
    return LAYOUT.address_of_offset(FileOffset(offset))


def test_an_offset_in_code_has_its_address() -> None:
    assert address_of(0x1000) == 0x401000
    assert address_of(0x1233) == 0x401233


def test_an_offset_that_two_segments_hold_is_code() -> None:
    assert address_of(0x1200) == 0x401200


def test_other_segments_tell_what_code_does_not_hold() -> None:
    assert address_of(0x1234) == 0x602034
    assert address_of(0x12FF) == 0x6020FF


def test_outside_of_the_file_there_is_none() -> None:
    assert address_of(0xFFF) is None
    assert address_of(0x1300) is None  # memory behind the file's bytes is zeros


def test_code_ends_with_its_segment() -> None:
    assert [LAYOUT.is_code(ImageAddress(a)) for a in (0x400FFF, 0x401000, 0x401233, 0x401234)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert not LAYOUT.is_code(DATA.address)
    assert DATA.end == 0x602900
