"""The text of a table is the text of its tree."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm import text_table as llvm_text_table
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.support.errors import OutputError

NAMES = ("f", "_Z3gv.llvm.7", "\u00e9", "\udcff", "b:1", "")
Row = tuple[int, int, int, int, int, int]
BITS = st.integers(0, 7)
COUNTS = st.sampled_from((0, 1, 9, 10, 99, 12345, 2**63, 2**64 - 1))


def column(values: list[int], dtype: type = np.int64) -> np.ndarray:
    return np.array(values, dtype)


@st.composite
def tables(draw: st.DrawFn) -> ProfileTable:
    lines, words, names = st.integers(0, 65535), st.integers(0, 2**32 - 1), st.integers(0, 5)
    contexts: list[Row] = []
    for i in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(-1, i - 1))
        place = (draw(lines), draw(words)) if parent >= 0 else (0, 0)
        head = draw(COUNTS) if parent < 0 else 0
        row = (parent, *place, draw(names), draw(COUNTS), head)
        if row[:4] not in [known[:4] for known in contexts]:
            contexts.append(row)
        else:
            break
    places = st.tuples(st.integers(0, max(len(contexts) - 1, 0)), lines, words)
    body = sorted(draw(st.sets(places, max_size=12))) if contexts else []
    calls = sorted(draw(st.sets(st.tuples(st.integers(0, len(body) - 1), names)))) if body else []
    parents, line, discriminator, name, total, head = (
        zip(*contexts, strict=True) if contexts else [()] * 6
    )
    return ProfileTable(
        NAMES,
        Contexts(*map(column, (parents, line, discriminator, name)),
                 column(total, np.uint64), column(head, np.uint64)),
        Body(*(column([row[i] for row in body]) for i in range(3)),
             column([draw(COUNTS) for _ in body], np.uint64)),
        CallTargets(*(column([row[i] for row in calls]) for i in range(2)),
                    column([draw(COUNTS) for _ in calls], np.uint64)),
        checksum=draw(st.none() | st.just(column([draw(COUNTS) for _ in contexts], np.uint64))),
        attributes=draw(st.none() | st.just(column([draw(BITS) for _ in contexts], np.uint8))),
    )  # fmt: skip


def text(table: ProfileTable) -> bytes:
    stream = io.BytesIO()
    llvm_text_table.write(table, stream)
    return stream.getvalue()


def text_of_tree(table: ProfileTable) -> bytes:
    stream = io.BytesIO()
    llvm_text.write(table.tree(), stream)
    return stream.getvalue()


@given(tables())
def test_a_table_and_its_tree_have_the_same_text(table: ProfileTable) -> None:
    assert text(table) == text_of_tree(table)


@given(tables(), st.data())
def test_contexts_and_their_tree_have_the_same_text(
    table: ProfileTable, data: st.DataObject
) -> None:
    has_body = np.isin(np.arange(len(table.contexts)), table.body.context)
    drawn = column([data.draw(st.booleans()) for _ in has_body], np.bool_)
    bits = column([data.draw(BITS) for _ in has_body], np.uint8)
    profile = ContextProfile(replace(table, attributes=None), has_body | drawn, bits)
    tree, columns = io.BytesIO(), io.BytesIO()
    llvm_text.write(profile.tree(), tree)
    llvm_text_table.write(profile, columns)
    assert columns.getvalue() == tree.getvalue()


def many(contexts: int) -> ProfileTable:
    number = np.arange(contexts)
    zeros, counts = np.zeros_like(number), number.astype(np.uint64)
    return ProfileTable(
        tuple(f"f{i}" for i in number),
        Contexts(zeros - 1, zeros, zeros, number, counts, counts),
        Body(number, zeros + 1, zeros, counts),
        CallTargets(number, number[::-1].copy(), counts + np.uint64(1)),
    )


def test_more_contexts_than_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_text_table, "_BYTES_AT_ONCE", 1 << 16)
    table = many(5000)
    assert text(table) == text_of_tree(table)
    assert text(table).startswith(b"f4999:4999:4999\n 1: 4999 f0:5000\nf4998:")


def test_the_largest_numbers_have_room() -> None:
    """Each context is as long as it can be."""
    size = 4096
    number = np.arange(size)
    largest = np.full(size, 2**64 - 1, np.uint64)
    line, word = np.full(size, 65535), np.full(size, 2**32 - 1)
    table = ProfileTable(
        tuple(f"{i:04}" for i in number),
        Contexts(number // 40 * 40 - 1, line, word, number, largest, largest),
        Body(number, line, word, largest),
        CallTargets(number, number, largest),
        checksum=largest,
        attributes=np.full(size, 255, np.uint8),
    )
    assert text(table) == text_of_tree(table)


def test_a_name_with_a_line_break_is_refused() -> None:
    table = many(2)
    broken = ProfileTable(("f", "a\nb"), table.contexts, table.body, table.calls)
    with pytest.raises(OutputError, match="line break"):
        text(broken)
