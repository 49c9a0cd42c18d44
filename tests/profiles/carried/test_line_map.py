from __future__ import annotations

import time

import pytest

from lbr2pgo.profiles.carried.line_map import line_map, neighbours

OLD = ("int f(int x) {", "int y = start(x);", "while (x > 0) {", "y += step(x);", "x--;", "}",
       "return y;", "}")  # fmt: skip


def moves(old: tuple[str, ...], new: tuple[str, ...]) -> list[tuple[int, ...]]:
    found = line_map(old, new)
    return [found.to(line) for line in range(len(old))]


def test_lines_that_are_as_before_follow_what_is_new() -> None:
    new = (OLD[0], "check(x);", *OLD[1:4], "log(y);", *OLD[4:])
    found = line_map(OLD, new)
    assert found.kept == {0: 0, 1: 2, 2: 3, 3: 4, 4: 6, 5: 7, 6: 8, 7: 9}
    assert found.changed == {}


def test_blanks_are_nothing() -> None:
    assert moves(("f(a,b);", "g();"), ("f(a, b);", "g( );")) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        pytest.param(("y += step(x);",), ("total += step(x);",), [(0,)], id="a word"),
        pytest.param(("a = one(x) + two(y);",), ("a = one(x)", "+ two(y);"), [(0, 1)], id="split"),
        pytest.param(
            ("a = one(x)", "+ two(y);"), ("a = one(x) + two(y);",), [(0,), (0,)], id="join"
        ),
        pytest.param(("a = one(x);",), ("return zero;",), [()], id="another"),
        pytest.param(("g(1);", "h(x);"), ("h(x);", "i();", "g(1);"), [(2,), (0,)], id="moved"),
        pytest.param(("h(x);", "k = g(1, z);"), ("q = g(one);", "h(x);"), [(1,), (0,)], id="call"),
        pytest.param(("a();",), ("a();", "a();"), [(0,)], id="repeated"),
    ],
)
def test_lines_that_changed(old, new, moved) -> None:
    assert moves(old, new) == moved


def test_a_line_that_is_gone_is_nowhere() -> None:
    assert moves(OLD, OLD[:4] + OLD[5:]) == [(0,), (1,), (2,), (3,), (), (4,), (5,), (6,)]


def test_some_lines_alone() -> None:
    found = line_map(("a();", "b(x, y);"), ("a();", "b(x, z);")).of([1])
    assert (found.kept, found.changed) == ({}, {1: (1,)})


def test_long_stretches_are_not_compared_by_words() -> None:
    old = tuple(f"a{number} = b{number} + c;" for number in range(2000))
    new = tuple(f"a{number} = b{number} - d;" for number in range(2000))
    assert line_map(old, new).changed == {}


def test_lines_that_are_everywhere_take_no_longer_than_others() -> None:
    start = time.process_time()
    old, new = (tuple(f"x{row % many}();" for row in range(20000)) for many in (7, 5))
    line_map(old, new)
    assert time.process_time() - start < 2


def test_lines_without_counts_have_a_neighbour_in_their_block() -> None:
    lines = ("f() {", "one();", "two();", "if (x) {", "new();", "three();", "return 1;", "}",
             "other();", "last();", "}")  # fmt: skip
    assert neighbours(lines, {0, 2, 3, 5, 8}) == {1: 2, 4: 5}


def test_nothing_goes_beyond_a_branch() -> None:
    for branch in ("while (x) {", "case 1:", "default:", "done:", "vmcase(OP_ADD) {", "} else {"):
        assert neighbours(("new();", branch, "known();"), {1, 2}) == {}, branch
    for line in ("if (y)", "else", "} else if (g(y))", "for (;;)"):
        assert neighbours((line, "new();", "known();"), {2}) == {}, line
    assert neighbours(("new();", "if (y)", "known();"), {2}) == {}
