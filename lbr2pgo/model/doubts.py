"""Notes that question all that is made of an input: people read them before they believe it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class Doubt(str):
    """A note that is a warning: the input is damaged, counted twice, or not what it seems."""

    __slots__ = ()


def told_of(name: str, note: str) -> str:
    """What is said of an input, by its name if it has one; a doubt stays one.

    >>> told_of("a.data", "cut off"), type(told_of("a.data", Doubt("cut off"))).__name__
    ('a.data: cut off', 'Doubt')
    """
    return type(note)(f"{name}: {note}") if name else note


def counted(health: Mapping[str, int], name: str = "") -> Iterator[str]:
    """What of an input could not be used: reasons in words, and how often, where it happened.

    >>> list(counted({"cut off": 1_200, "odd": 0}, "lines"))
    ['lines: cut off: 1,200']
    """
    return (told_of(name, f"{why}: {count:,}") for why, count in health.items() if count)


def parted(notes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Doubts, and all other notes."""
    parts: tuple[list[str], list[str]] = ([], [])
    for note in notes:
        parts[not isinstance(note, Doubt)].append(note)
    return parts
