"""Strings that stay bytes."""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.texts import Texts

STRINGS = ["main", "", "\udcff.a", "é", "main.cold\n"]


def test_they_are_the_strings_that_they_were_made_of() -> None:
    texts = Texts.of(STRINGS)
    assert texts == STRINGS
    assert texts != STRINGS[1:]
    assert hash(texts) == hash(tuple(STRINGS))
    assert [texts[i] for i in range(len(texts))] == STRINGS
    assert texts[1:3] == STRINGS[1:3]
    assert Texts.of(texts) is texts
    assert Texts.of([]) == ()


def test_rows_are_taken_and_replaced() -> None:
    texts = Texts.of(STRINGS)
    assert texts.take(np.array([4, 0, 0])) == ("main.cold\n", "main", "main")
    assert texts.but(np.array([1, 3]), ["x", ""]) == ("main", "x", "\udcff.a", "", "main.cold\n")
    assert texts == STRINGS


def test_they_are_asked_without_being_decoded() -> None:
    texts = Texts.of(STRINGS).take(np.array([4, 3, 2, 1, 0]))
    assert texts.lengths().tolist() == [10, 2, 3, 0, 4]
    assert texts.start_with(b"main").tolist() == [True, False, False, False, True]
    assert texts.start_with(b"main.").tolist() == [True, False, False, False, False]
    assert texts.holding(b".").tolist() == [True, False, True, False, False]
    assert texts.holding(b"\n").tolist() == [True, False, False, False, False]
