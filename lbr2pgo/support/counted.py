"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """So many of a thing, named in the singular.

    >>> counted(1, "sample"), counted(1234, "sample"), counted(0, "taken branch")
    ('1 sample', '1,234 samples', '0 taken branches')
    """
    ending = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {thing if number == 1 else thing + ending}"
