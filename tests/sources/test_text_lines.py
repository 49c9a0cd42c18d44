"""Pieces of whole lines, wherever a file is cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lbr2pgo.sources.text_lines import LineReader
from lbr2pgo.support.errors import InputError

TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n", b"d" * 30, b"e" * 200])).map(b"".join)
file_settings = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@file_settings
@given(TEXTS, st.integers(1, 100))
@example(b"ab\ncd\n", 3)  # a line ends where a piece does
@example(b"ab\ncd\n", 2)  # a line is as long as a piece without its end
@example(b"\n\n\n", 1)
@example(b"abcd", 4)
@example(b"abcde", 4)
@example(b"abcde\nf", 4)
def test_every_line_is_read_once_or_too_long(tmp_path: Path, text: bytes, size: int) -> None:
    path = tmp_path / "text"
    path.write_bytes(text)
    reader = LineReader(path, size)
    lines = text.splitlines(keepends=True)
    pieces = list(reader.chunks())
    assert b"".join(piece for piece, _ in pieces) == b"".join(x for x in lines if len(x) <= size)
    assert reader.overlong_bytes == sum(len(x) for x in lines if len(x) > size)
    for piece, base in pieces:
        assert text[base : base + len(piece)] == piece
        assert base == 0 or text[base - 1 : base] == b"\n"


@file_settings
@given(TEXTS, st.integers(1, 100), st.randoms())
def test_pieces_may_be_read_in_any_order(tmp_path: Path, text: bytes, size: int, random) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "text"
    path.write_bytes(text)
    reader = LineReader(path, size)
    expected = list(reader.chunks()), reader.overlong_bytes
    with reader.open() as pieces:
        buffers = [pieces.buffer(), pieces.buffer()]
        starts = list(pieces.starts)
        random.shuffle(starts)
        found = {}
        for start in starts:
            piece, base = random.choice(buffers).read(start)
            found[start] = bytes(piece), base
    in_order = [found[start] for start in sorted(found) if found[start][0]]
    assert (in_order, reader.overlong_bytes) == expected


def test_a_line_longer_than_what_is_read_at_once_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    line = b"x" * 300_000 + b"\n"
    path.write_bytes(b"ab\n" + line + b"cd\n")
    reader = LineReader(path, 1 << 20)
    assert [bytes(piece) for piece, _ in reader.chunks()] == [b"ab\n" + line + b"cd\n"]
    small = LineReader(path, 300_001)
    assert b"".join(piece for piece, _ in small.chunks()) == b"ab\n" + line + b"cd\n"


def test_a_pass_counts_anew(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"too long\nab\n")
    reader = LineReader(path, 4)
    for _ in range(2):
        assert b"".join(piece for piece, _ in reader.chunks()) == b"ab\n"
        assert reader.overlong_bytes == 9


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(InputError, match="can't be read twice"):
            next(LineReader(pipe).chunks())
    finally:
        os.close(holder)


def test_what_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="can't be read"):
            next(LineReader(path).chunks())
