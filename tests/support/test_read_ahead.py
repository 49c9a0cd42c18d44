import threading
from collections.abc import Iterator

import pytest

from lbr2pgo.support.read_ahead import read_ahead


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "lbr2pgo-reader"]


def test_order_and_number_are_kept() -> None:
    assert list(read_ahead(range(1000))) == list(range(1000))
    assert list(read_ahead([])) == []
    assert not readers()


def test_items_are_made_in_another_thread() -> None:
    makers = {*read_ahead(threading.current_thread().name for _ in range(3))}
    assert makers == {"lbr2pgo-reader"}


def test_an_error_comes_after_what_was_made_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("damaged")

    ahead = read_ahead(broken())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="damaged"):
        next(ahead)
    assert not readers()


def test_stopping_early_ends_the_thread() -> None:
    made = []

    def endless() -> Iterator[int]:
        for number in range(10**9):
            made.append(number)
            yield number

    ahead = read_ahead(endless())
    assert next(ahead) == 0
    ahead.close()
    assert not readers()
    assert len(made) < 100
