"""Lines of a sample profile against those that Python formats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles._profile_lines import (
    BODY_BYTES,
    CALL_BYTES,
    CHECKSUM_BYTES,
    HEADER_BYTES,
    BodyLines,
    CallerStacks,
    CallParts,
    ContextLines,
    ProfileLines,
    put_lines,
)
from lbr2pgo.profiles.table_lines import table_lines
from lbr2pgo.support.texts import Texts

NAMES = (b"main", b"", b"_Z3foov")
TEXT = Texts.of_bytes(NAMES)


def one_of_each(number: int, word: int, depth: int) -> tuple[ContextLines, BodyLines, CallParts]:
    """Two contexts, three locations, two calls; `number` is the counts, `word` what they are at."""
    counts = [np.full(size, number, np.uint64) for size in (2, 3, 2)]
    return (
        ContextLines(
            np.array([0, depth]), np.array([0, word]), np.array([0, word]), np.array([0, 2]),
            counts[0], counts[0], np.array([0, 2, 3]), None, None,
        ),
        BodyLines(np.full(3, word), np.array([0, word, 0]), counts[1], np.array([0, 1, 1, 2])),
        CallParts(np.array([2, 1]), counts[2]),
    )  # fmt: skip


@pytest.mark.parametrize("number", [0, 7, 10, 99, 100, 2**32, 10**19, 2**64 - 1])
@pytest.mark.parametrize("word", [1, 65535])
@pytest.mark.parametrize("depth", [1, 30])
def test_lines(number: int, word: int, depth: int) -> None:
    columns = one_of_each(number, word, depth)
    room = 2 * (HEADER_BYTES + depth) + 3 * (BODY_BYTES + depth + 1) + 2 * CALL_BYTES + 30
    out = np.zeros(room, np.uint8)
    size = ProfileLines(*columns, TEXT).put(0, 2, out)
    indent = " " * depth
    assert out[:size].tobytes().decode().splitlines() == [
        f"main:{number}:{number}",
        f" {word}: {number} _Z3foov:{number}",
        f" {word}.{word}: {number}",
        f"{indent}{word}.{word}: _Z3foov:{number}",
        f"{indent} {word}: {number} :{number}",
    ]
    assert not out[size:].any()


def test_some_contexts_only() -> None:
    columns = one_of_each(5, 2, 1)
    out = np.zeros(200, np.uint8)
    size = ProfileLines(*columns, TEXT).put(1, 2, out)
    assert out[:size].tobytes() == b" 2.2: _Z3foov:5\n  2: 5 :5\n"


@pytest.mark.parametrize("room", [0, 1, 10, 25])
def test_nothing_is_written_beyond_the_room(room: int) -> None:
    out = np.zeros(200, np.uint8)
    lines = ProfileLines(*one_of_each(5, 2, 1), TEXT)
    assert lines.put(1, 2, out) == 26
    whole = out.tobytes()
    out[:] = 0
    if room:
        with pytest.raises(IndexError, match="longer than the room"):
            lines.put(1, 2, out[:room])
    assert out[room:].tobytes() == bytes(200 - room)
    assert whole.startswith(out.tobytes().rstrip(b"\0"))


def test_attributes_stand_behind_checksums_where_there_are_any() -> None:
    contexts, body, calls = one_of_each(5, 2, 1)
    checksums, attributes = np.array([8, 9], np.uint64), np.array([0, 255], np.uint8)
    contexts = contexts._replace(checksum=checksums, attributes=attributes)
    out = np.zeros(300, np.uint8)
    size = ProfileLines(contexts, body, calls, TEXT).put(0, 2, out)
    assert out[:size].tobytes().decode().splitlines()[3:] == [
        " 2.2: _Z3foov:5",
        "  2: 5 :5",
        "  !CFGChecksum: 9",
        "  !Attributes: 255",
        " !CFGChecksum: 8",
    ]
    size = ProfileLines(contexts._replace(checksum=None), body, calls, TEXT).put(0, 2, out)
    assert out[:size].tobytes().decode().splitlines()[-1] == "  !Attributes: 255"


def test_functions_stand_behind_their_callers() -> None:
    """main calls foo at 3.1, which calls a nameless one at 2, which calls main at 0."""
    contexts, body, calls = one_of_each(5, 2, 0)
    parent, line, word = np.array([-1, 0, 1, 2]), np.array([0, 3, 2, 0]), np.array([0, 1, 0, 0])
    stacks = CallerStacks(np.array([3, 0]), parent, line, word, np.array([0, 2, 1, 0]), 3)
    out = np.zeros(300, np.uint8)
    size = ProfileLines(contexts, body, calls, TEXT, stacks).put(0, 2, out)
    heads = [row for row in out[:size].tobytes().decode().splitlines() if row[0] == "["]
    assert heads == ["[main:3.1 @ _Z3foov:2 @ :0 @ main]:5:5", "[main]:5:5"]


def test_checksums_stand_where_contexts_end() -> None:
    """Three functions: one with a nest of two, and one more inlined, and two without."""
    depth, zeros = np.array([0, 1, 2, 1, 0, 0]), np.zeros(6, np.int64)
    checksums = np.array([1, 2, 3, 4, 5, 2**64 - 1], np.uint64)
    counts = np.full(6, 9, np.uint64)
    contexts = ContextLines(
        depth, depth + 7, zeros, zeros, counts, counts, np.zeros(7, np.int64), checksums, None
    )
    nothing = np.empty(0, np.int64)
    body = BodyLines(nothing, nothing, nothing.astype(np.uint64), np.zeros(1, np.int64))
    calls = CallParts(nothing, nothing.astype(np.uint64))
    out = np.zeros(6 * (HEADER_BYTES + CHECKSUM_BYTES + 10), np.uint8)
    lines = ProfileLines(contexts, body, calls, TEXT)
    text = "".join(
        out[: lines.put(first, end, out)].tobytes().decode() for first, end in ((0, 4), (4, 6))
    )
    assert text.splitlines() == [
        "main:9:9",
        " 8: main:9",
        "  9: main:9",
        "   !CFGChecksum: 3",
        "  !CFGChecksum: 2",
        " 8: main:9",
        "  !CFGChecksum: 4",
        " !CFGChecksum: 1",
        "main:9:9",
        " !CFGChecksum: 5",
        "main:9:9",
        f" !CFGChecksum: {2**64 - 1}",
    ]


NAMES = [b"main", b"", b"_Z3foov"]
NUMBER = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(NUMBER, st.integers(0, len(NAMES) - 1), NUMBER), max_size=9))
def test_lines_are_those_that_python_formats(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.uint64).reshape(-1, 3)
    found = b"".join(table_lines("T %x:%s %d", list(table.T), Texts.of_bytes(NAMES)))
    assert found == b"".join(b"T %x:%s %d\n" % (a, NAMES[i], b) for a, i, b in rows)


def test_many_rows_come_in_blocks() -> None:
    column = np.arange(1 << 17, dtype=np.uint64)
    blocks = list(table_lines("%d", [column]))
    assert len(blocks) > 1
    assert b"".join(blocks) == b"".join(b"%d\n" % number for number in column.tolist())


def test_columns_of_any_width_will_do() -> None:
    columns = [np.array([1], np.uint8), np.array([2], np.int32)]
    assert b"".join(table_lines("%d %x", columns)) == b"1 2\n"


@pytest.mark.parametrize("room", [0, 1, 4, 7])
def test_too_little_room_is_an_error(room: int) -> None:
    rows, nothing = np.array([[255, 12345]], np.uint64), Texts.of_bytes([])
    out = np.zeros(room, np.uint8)
    with pytest.raises(IndexError, match="room"):
        put_lines(b"%x %d\n", rows, nothing, out)


def test_a_name_that_is_not_there_is_an_error() -> None:
    names, out = Texts.of_bytes(NAMES), np.zeros(99, np.uint8)
    for row in (3, 2**63):
        with pytest.raises(IndexError):
            put_lines(b"%s\n", np.array([[row]], np.uint64), names, out)


def test_a_form_with_more_columns_than_the_table_is_an_error() -> None:
    names, out = Texts.of_bytes(NAMES), np.zeros(99, np.uint8)
    for form in (b"%d %d\n", b"%"):
        with pytest.raises(IndexError):
            put_lines(form, np.array([[1]], np.uint64), names, out)
