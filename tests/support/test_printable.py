from __future__ import annotations

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.support.printable import printable


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_steers_is_left(text: str) -> None:
    shown = printable(text)
    categories = {unicodedata.category(c) for c in shown}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"]) | st.just(" ")))
def test_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_what_terminals_obey_is_shown() -> None:
    shown = {
        "\x1b]0;title\x07": r"\x1b]0;title\x07",
        "a\rb\nc\td": r"a\rb\nc\td",
        "\x9b31m": r"\x9b31m",
        "x\u202ey\u2066z": r"x\u202ey\u2066z",
        "\u2028": r"\u2028",
        "\ufeff": r"\ufeff",
        "\udcff": r"\udcff",
        "\x00\x7f": r"\x00\x7f",
    }
    for text, expected in shown.items():
        assert printable(text) == expected


def test_every_character_can_be_printed() -> None:
    for c in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            assert printable(c).startswith("\\")
            assert printable(c).isascii()
