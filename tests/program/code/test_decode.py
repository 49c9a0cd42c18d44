from __future__ import annotations

import numpy as np
import pytest
from builders.elf import Function, elf
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.code.architecture import PADDING
from lbr2pgo.program.code.decode import decode, gather, text
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ByteRanges

BASE = 0x401000
CODE = bytes.fromhex("90 b801000000 0f1f00 06 c3 e8f0ffffff c3")
"""nop; mov; nop of three bytes; no instruction; ret; a call of the start; ret"""

bounds = st.integers(0, len(CODE))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("decoded") / "program"
    path.write_bytes(elf(CODE, BASE, [Function("_start", BASE, len(CODE))]))
    return Image.open(path)


def ranges(*pieces: tuple[int, int]) -> ByteRanges:
    return ByteRanges.of([(BASE + start, BASE + end) for start, end in pieces])


def test_instructions_are_found_by_a_sweep_and_bad_bytes_leave_a_gap(image: Image) -> None:
    table = decode(image, ranges((0, len(CODE))))
    assert (table.address - np.uint64(BASE)).tolist() == [0, 1, 6, 10, 11, 16]
    assert table.size.tolist() == [1, 5, 3, 1, 5, 1]
    assert table.target[table.has_target].tolist() == [BASE]


def test_each_range_is_swept_from_its_start(image: Image) -> None:
    table = decode(image, ranges((2, 4), (10, 11)))
    assert (table.address - np.uint64(BASE)).tolist()[-1] == 10


@given(st.lists(st.tuples(bounds, bounds).map(sorted).map(tuple), max_size=5))
def test_bytes_are_gathered_once_in_the_order_of_addresses(
    image: Image, pieces: list[tuple[int, int]]
) -> None:
    data, starts_in_data, starts = gather(image, ranges(*pieces))
    held = sorted({at for start, end in pieces for at in range(start, end)})
    assert bytes(data[:-PADDING]) == bytes(CODE[at] for at in held)
    assert not data[-PADDING:].any()
    assert starts_in_data[-1] == len(held)
    assert [held.index(int(start) - BASE) for start in starts] == starts_in_data[:-1]


def test_of_a_range_past_the_end_of_the_file_there_is_what_the_file_holds(image: Image) -> None:
    data, bounds, _ = gather(image, ranges((0, 4), (10, len(CODE) + 5000)))
    assert bytes(data[:-PADDING]) == CODE[:4] + CODE[10:]
    assert bounds == [0, 4, 4 + len(CODE[10:])]


def test_instructions_are_written_with_their_addresses_and_bytes(image: Image) -> None:
    found = list(text(image, BASE + 10, BASE + len(CODE)))
    assert [(address - BASE, code) for address, code, _ in found] == [
        (10, CODE[10:11]), (11, CODE[11:16]), (16, CODE[16:]),
    ]  # fmt: skip
    assert [words.split()[0] for *_, words in found] == ["retq", "callq", "retq"]
    assert found[1][2].endswith(f"{BASE:#x}")
