from __future__ import annotations

import pytest

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress

LAST = 2**64 - 1


@pytest.mark.parametrize(
    ("start", "length", "end"),
    [(0x1000, 0x10, 0x1010), (0x1000, 0, 0x1000), (LAST - 4, 4, LAST), (LAST - 4, 2**63, LAST)],
)
def test_a_mapping_ends_behind_its_bytes_and_with_the_address_space(
    start: int, length: int, end: int
) -> None:
    mapping = Mmap(1, 1, 0, RuntimeAddress(start), length, FileOffset(0), "a")
    assert mapping.end == end
