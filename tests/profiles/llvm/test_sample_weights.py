from __future__ import annotations

import pytest

from lbr2pgo.profiles.llvm.sample_weights import entered, weights
from lbr2pgo.profiles.llvm.text import parse
from lbr2pgo.profiles.weights import CallSite


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        ("f:9:4\n 1: 3\n", 4),
        ("f:9:0\n 2: 3\n 4: 9\n", 3),
        ("f:9:0\n 3: 8\n 2: g:5\n  1: 2\n 2: h:5\n  1: 4\n", 6),
        ("f:0:0\n", 0),
    ],
    ids=["head", "first line", "inlined there", "nothing"],
)
def test_how_often_a_function_was_entered(lines: str, times: int) -> None:
    (function,) = parse(lines.encode().splitlines(), "a profile").functions.values()
    assert entered(function) == times


def test_an_inlined_copy_is_its_functions_and_a_call_of_it() -> None:
    lines = "f:12:2\n 1: 2\n 2.1: g:10\n  1: 4\n  2: h:6\n   1: 6\ng:7:7\n 1: 7\n"
    found = weights(parse(lines.encode().splitlines(), "a profile"))
    assert found.functions == {"f": 2, "g": 11, "h": 6}
    assert found.calls == {CallSite("f", "2.1", "g"): 4, CallSite("g", "2", "h"): 6}
    assert found.total == 19
