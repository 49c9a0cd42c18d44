from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.words import WORD, word_at


@settings(deadline=None)  # the loop may have to be compiled
@given(st.binary(min_size=WORD, max_size=20), st.data())
def test_a_word_is_what_python_makes_of_its_bytes(raw: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw) - WORD))
    expected = int.from_bytes(raw[at : at + WORD], "little")
    assert word_at(np.frombuffer(raw, np.uint8), at) == expected
