"""The order in which LLVM's tools walk their hash table of functions.

It shows in one place: the metadata section of binary profiles. The table is libstdc++'s
`std::unordered_map` under the 64-bit hashes of names: a new bucket's nodes come before all
others, a new node before the others of its bucket; a full table is filled anew, in this order,
into one with the next number of buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# Numbers of buckets of a table that grows one by one, as g++ 12 was seen to choose them.
_SIZES = (
    0, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061,
    712697, 1447153, 2938679, 5967347, 12117689, 24607243, 49969847, 101473717,
)  # fmt: skip


def table_order(hashes: Sequence[int]) -> list[int]:
    """Indices of the hashes as a table gives them after they were put into it one by one.

    >>> table_order([1, 2, 14, 3])  # 1 and 14 share a bucket of the first 13
    [3, 1, 2, 0]
    """
    order: list[int] = []
    for full, size in pairwise(_SIZES):
        if len(order) == len(hashes):
            break
        order = _filled(order + list(range(full, min(size, len(hashes)))), hashes, size)
    return order


def _filled(order: Sequence[int], hashes: Sequence[int], size: int) -> list[int]:
    buckets: dict[int, list[int]] = {}
    for index in order:
        buckets.setdefault(hashes[index] % size, []).append(index)
    return [index for bucket in reversed(buckets.values()) for index in reversed(bucket)]
