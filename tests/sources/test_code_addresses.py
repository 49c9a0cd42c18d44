from __future__ import annotations

from dataclasses import replace

import numpy as np
from builders.sources import CODE, CODE_END, LAYOUT
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.code_addresses import addresses_of_offsets, are_code, text_base
from lbr2pgo.support.addresses import file_offsets, image_array

FIRST, LAST = 0x800, 0x17FF
"""File offsets of the code."""


def test_code_is_what_lies_in_executable_segments() -> None:
    places = image_array([0, 0x400, CODE - 1, CODE, CODE_END - 1, CODE_END, 0x5900, 2**64 - 1])
    assert are_code(LAYOUT, places).tolist() == [False] * 3 + [True] * 2 + [False] * 3
    assert are_code(LAYOUT, places.reshape(4, 2)).shape == (4, 2)


@given(st.lists(st.sampled_from([0, FIRST - 1, FIRST, FIRST + 9, LAST, LAST + 1, 2**64 - 1])))
def test_offsets_are_found_as_one_by_one(offsets: list[int]) -> None:
    found, known = addresses_of_offsets(LAYOUT, file_offsets(np.array(offsets, np.uint64)))
    expected = [CODE + offset - FIRST if FIRST <= offset <= LAST else None for offset in offsets]
    assert [a if k else None for a, k in zip(found.tolist(), known, strict=True)] == expected


def test_code_that_is_linked_below_its_file_offset_is_found() -> None:
    low = ImageLayout("a", None, "x86-64", False, (Segment(0x100, 0x1000, 0x50, 0x50, True),))
    found, known = addresses_of_offsets(low, file_offsets(np.array([0x1004], np.uint64)))
    assert (found.tolist(), known.tolist()) == ([0x104], [True])


def test_llvm_counts_offsets_from_the_page_of_the_first_code() -> None:
    assert text_base(LAYOUT) == 0x2000
    assert text_base(replace(LAYOUT, segments=())) == 0
