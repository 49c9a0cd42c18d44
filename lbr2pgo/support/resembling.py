"""What a mistyped word may have meant."""

from __future__ import annotations

from collections.abc import Collection


def did_you_mean(word: str, known: Collection[str]) -> str:
    """`; did you mean …?`, or nothing where no known word resembles this one.

    >>> did_you_mean("convrt", ["convert", "record"])
    '; did you mean convert?'
    >>> did_you_mean("frobnicate", ["convert", "record"])
    ''
    """
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
