from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.model.context_counts import Callers


@pytest.mark.parametrize(
    ("parent", "what"),
    [([], "only node 0"), ([0], "only node 0"), ([-1, -1], "only node 0"), ([-1, 2, 0], "before")],
)
def test_a_trie_has_one_root_and_parents_first(parent: list[int], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Callers(np.array(parent, np.int64), np.zeros(len(parent), np.uint64))


def test_a_trie_may_be_its_root_alone() -> None:
    assert len(Callers(np.array([-1]), np.zeros(1, np.uint64))) == 1
