from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.source_lines import SourceLines

LINES = SourceLines(
    group=np.array([1, 2, 0, 1]),
    files=("a.c", "b.c"),
    file=np.array([-1, 0, 1]),
    line=np.array([0, 7, 0]),
)
"""Of code without a line, of a.c:7, and of merged code of b.c."""


def test_line_0_of_a_file_is_known_and_no_file_is_not() -> None:
    assert LINES.known.tolist() == [False, True, True]
    assert LINES.texts(np.array([2, 1])) == ["b.c:0", "a.c:7"]


def test_what_has_no_line_of_its_own_is_said_by_weight() -> None:
    assert LINES.notes(np.array([5, 90, 1005]), "cycles") == (
        "5 of 1,100 cycles are of code that has no source line.",
        "1,005 of 1,100 cycles are of line 0: code that the compiler merged from several lines.",
    )
    assert LINES.notes(np.array([0, 90, 0]), "cycles") == ()


def test_code_without_any_line_is_said_once() -> None:
    assert LINES.notes(np.array([5, 0, 0]), "cycles") == (
        "None of this code has a source line.",
    )  # fmt: skip
