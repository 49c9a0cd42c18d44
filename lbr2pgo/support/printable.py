"""Names and paths from files, made safe to print: they are data and must not steer a terminal."""

from __future__ import annotations

# Controls, formats (bidirectional marks among them), surrogates, private use, line separators.
_STEERING = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def printable(text: str) -> str:
    r"""Show whatever could move the cursor, hide or turn text as an escape.

    >>> printable("plain name"), printable("\x1b[31mred\u202e")
    ('plain name', '\\x1b[31mred\\u202e')
    """
    if text.isprintable():
        return text
    import unicodedata  # a library, which where memory is short would keep us from saying so

    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _STEERING else c
        for c in text
    )
