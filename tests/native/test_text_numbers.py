"""Numbers of texts, against a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.support.arrays import I64


def spans(texts: list[bytes]) -> tuple[np.ndarray, I64, I64]:
    end = np.cumsum([len(text) for text in texts], dtype=np.int64)
    start = end - np.array([len(text) for text in texts], np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), start, end


def test_texts_are_numbered_as_they_come() -> None:
    rng = random.Random(1)
    texts = [bytes(rng.choices(b"abc", k=rng.randrange(20))) for _ in range(6000)]
    known, expected = TextNumbers(), dict[bytes, int]()
    for text in texts[:50]:
        assert known.number(text) == expected.setdefault(text, len(expected))
    numbers = known.number_all(*spans(texts))
    assert numbers.tolist() == [expected.setdefault(text, len(expected)) for text in texts]
    text, start, end = known.texts()
    assert len(known) == len(expected) > 3000
    assert [text[a:b].tobytes() for a, b in zip(start, end, strict=True)] == list(expected)


def test_no_text_at_all() -> None:
    assert [each.tolist() for each in TextNumbers().texts()] == [[], [], []]


@pytest.mark.parametrize(("start", "end"), [(2, 1), (0, 4), (5, 6), (-1, 1)])
def test_what_is_outside_is_refused(start: int, end: int) -> None:
    with pytest.raises(IndexError):
        TextNumbers().number_all(np.zeros(3, np.uint8), np.array([start]), np.array([end]))
