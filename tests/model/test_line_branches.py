from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbr2pgo.model.line_branches import TEXT_COLUMNS, LineBranches


def branches(rows: int) -> LineBranches:
    texts = dict.fromkeys(TEXT_COLUMNS, ("",) * rows)
    return LineBranches(**texts, samples=np.ones(rows, np.int64), mispredicted=None)


def test_there_are_as_many_as_rows() -> None:
    assert len(branches(3)) == 3


@pytest.mark.parametrize("name", [*TEXT_COLUMNS, "mispredicted"])
def test_a_column_of_another_length_is_refused(name: str) -> None:
    column = np.zeros(3, np.int64) if name == "mispredicted" else ("",) * 3
    with pytest.raises(ValueError, match=r"different lengths: \[2, 3\]"):
        replace(branches(2), **{name: column})
