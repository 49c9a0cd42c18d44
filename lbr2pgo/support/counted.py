"""Numbers of things, and lists of them, in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """So many of a thing, named in the singular.

    >>> counted(1, "sample"), counted(1234, "sample"), counted(0, "taken branch")
    ('1 sample', '1,234 samples', '0 taken branches')
    """
    ending = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {thing if number == 1 else thing + ending}"


def listed(things: Sequence[str]) -> str:
    """All of them in a row.

    >>> listed(["one"]), listed(["one", "two"]), listed(["one", "two", "three"])
    ('one', 'one and two', 'one, two and three')
    """
    return " and ".join(filter(None, (", ".join(things[:-1]), *things[-1:])))
