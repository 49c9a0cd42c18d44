"""Words of eight bytes, little-endian, wherever they stand among bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.support.arrays import Bytes

WORD = 8


@compiled_leaf
def word_at(data: Bytes, at: Any) -> np.uint64:
    """The number that `data[at : at + WORD]` holds.

    One load when compiled. A view of the bytes as words would cost more than all the rest: Numba
    checks it each time, and loads a tenth of itself for that.
    """
    place = np.uint64(at)
    word = np.uint64(0)
    for i in range(np.uint64(WORD)):  # of unsigned indices none counts from the end
        word |= np.uint64(data[place + i]) << (np.uint64(8) * i)
    return word
