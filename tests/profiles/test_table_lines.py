from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles import table_lines as module
from lbr2pgo.profiles.table_lines import table_lines
from lbr2pgo.support.texts import Texts

numbers = st.integers(0, 2**64 - 1)
texts = st.lists(st.binary(max_size=5), min_size=1, max_size=4)


@given(st.data(), texts)
def test_lines_are_those_of_plain_formatting(data: st.DataObject, names: list[bytes]) -> None:
    row = st.tuples(numbers, st.integers(0, len(names) - 1), numbers)
    rows = data.draw(st.lists(row, max_size=5))
    columns = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    columns = columns or [np.zeros(0, np.uint64)] * 3
    expected = b"".join(b"%x %s:%d\n" % (a, names[b], c) for a, b, c in rows)
    assert b"".join(table_lines("%x %s:%d", columns, Texts.of_bytes(names))) == expected


def test_many_rows_come_in_blocks() -> None:
    count = np.arange(module._ROWS_AT_ONCE + 1)
    blocks = list(table_lines("%d", [count]))
    assert len(blocks) == 2
    assert b"".join(blocks) == b"".join(b"%d\n" % i for i in count.tolist())
