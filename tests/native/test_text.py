"""Steps through text against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.text import line_end

BYTES = st.lists(st.sampled_from(b"\n\x0b\x8a\x0a\xffab"), max_size=40).map(bytes)


@settings(deadline=None)  # the loop may have to be compiled
@given(BYTES, st.integers(0, 40), st.integers(0, 40))
def test_lines_end_where_python_finds_their_end(text: bytes, place: int, end: int) -> None:
    end = min(end, len(text))
    place = min(place, end)
    found = text.find(b"\n", place, end)
    assert line_end(np.frombuffer(text, np.uint8), place, end) == (end if found < 0 else found)
