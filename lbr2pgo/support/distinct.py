"""The distinct values of large arrays."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Integer = TypeVar("Integer", bound=np.integer[Any])


def distinct(values: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Each of (n,) values once, ascending.

    `np.unique` hashes since NumPy 2.3, which takes a hundred times as long for a million addresses.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
