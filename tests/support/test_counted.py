from __future__ import annotations

import pytest

from lbr2pgo.support.counted import counted, listed


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [
        (1, "sample", "1 sample"),
        (2, "branch", "2 branches"),
        (0, "fall-through", "0 fall-throughs"),
    ],
)
def test_one_thing_is_no_plural(number: int, thing: str, text: str) -> None:
    assert counted(number, thing) == text


@pytest.mark.parametrize(
    ("things", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_a_list_ends_with_and(things: list[str], text: str) -> None:
    assert listed(things) == text
