"""Iterables that can be gone through more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Again(Iterable[T], Generic[T]):
    """Begins anew each time it is gone through."""

    def __init__(self, begin: Callable[[], Iterator[T]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[T]:
        return self._begin()


def repeatable(generator: Callable[P, Iterator[T]]) -> Callable[P, Again[T]]:
    """Let what a generator gives be gone through as often as wanted.

    A generator alone is empty the second time, and doesn't say so.

    >>> squares = repeatable(lambda n: (i * i for i in range(n)))(3)
    >>> list(squares), list(squares)
    ([0, 1, 4], [0, 1, 4])
    """

    @wraps(generator)
    def begin(*args: P.args, **kwargs: P.kwargs) -> Again[T]:
        return Again(partial(generator, *args, **kwargs))

    return begin
