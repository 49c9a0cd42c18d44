"""Records made of JSON: of values of their fields' types, and of no others."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from lbr2pgo.provenance.typed import typed, typed_fields
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Inner:
    """A record in a record."""

    numbers: tuple[int, ...] = ()
    span: tuple[int, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """A record."""

    inner: Inner = Inner()
    names: frozenset[str] = frozenset()
    form: Literal["text", "binary"] = "text"
    is_odd: bool = False


def test_a_record_is_made_of_what_is_told_and_the_defaults() -> None:
    told = {"inner": {"numbers": [1, 2], "span": [3, None]}, "names": ["a"], "form": "binary"}
    assert typed(Outer, told) == Outer(Inner((1, 2), (3, None)), frozenset("a"), "binary")


@pytest.mark.parametrize(
    "told",
    [
        {"inner": 7}, {"inner": {"numbers": 7}}, {"inner": {"numbers": ["1"]}},
        {"inner": {"numbers": [True]}}, {"inner": {"span": [1]}}, {"inner": {"span": [None, 1]}},
        {"inner": {"other": 1}}, {"names": "a"}, {"names": [[]]}, {"form": "x"}, {"form": []},
        {"is_odd": 1}, {"is_odd": None}, {"other": 1}, [1],
    ],
)  # fmt: skip
def test_other_values_are_refused(told: Any) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        typed_fields(Outer, told)
