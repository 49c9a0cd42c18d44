"""Tables as lines of text, one line a row, for every format that is such lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.profiles._profile_lines import NUMBER_BYTES, put_lines
from lbr2pgo.support.texts import Texts
from lbr2pgo.support.threads import made_of_each

_ROWS_AT_ONCE = 1 << 14


_NO_NAMES = Texts.of([])


def table_lines(
    form: str, columns: Sequence[npt.NDArray[Any]], names: Texts = _NO_NAMES
) -> Iterator[bytes]:
    r"""Blocks of lines, one line for each row of columns (n,), whose numbers are not negative.

    In `form` `%x` and `%d` stand for columns in hexadecimal and decimal, `%s` for rows of `names`.

    >>> b"".join(table_lines("%x-%x:%d", [np.array([16, 1]), np.array([255, 2]), np.array([3, 4])]))
    b'10-ff:3\n1-2:4\n'
    """
    line = f"{form}\n".encode()
    is_name = [kind == "s" for kind in re.findall("%(.)", form)]
    length = names.lengths()

    def text(first: int) -> bytes:
        parts = [column[first : first + _ROWS_AT_ONCE] for column in columns]
        room = len(parts[0]) * (len(line) + NUMBER_BYTES * len(parts))
        room += sum(int(length[p].sum()) for p, named in zip(parts, is_name, strict=True) if named)
        out = np.empty(room, np.uint8)
        rows = np.stack([part.astype(np.uint64) for part in parts], axis=1)
        return out[: put_lines(line, rows, names, out)].tobytes()

    return made_of_each(text, range(0, len(columns[0]), _ROWS_AT_ONCE))
