"""Our dataclasses, against those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from lbr2pgo.support.dataclass import dataclass

Make = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Slotted:
    """In slots alone."""

    x: int
    y: int = 2


@dataclass(frozen=True)
class Cached(Slotted):
    """In slots, and beside them."""

    @cached_property
    def double(self) -> int:
        """Kept where it was asked for."""
        return 2 * self.x


def _classes(make: Make) -> tuple[Any, Any]:
    """A class, and one that adds to it."""

    @make(frozen=True, slots=True, kw_only=True)
    class Options:
        strict: bool = False
        names: list[str] = field(default_factory=list)

    @make(frozen=True, slots=True)
    class Point(Options):
        ORIGIN: ClassVar[int] = 0
        x: int
        y: int = 7
        hidden: int = field(default=0, repr=False, compare=False)

        def __post_init__(self) -> None:
            if self.x < self.ORIGIN:
                raise ValueError("left of the origin")

    return Options, Point


def _outcome(make: Callable[[], object]) -> object:
    try:
        return repr(make())
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((1,), {}),
        ((1, 2), {}),
        ((1, 2, 3), {}),
        ((1, 2, 3, 4), {}),
        ((), {}),
        ((), {"x": 1}),
        ((), {"y": 1}),
        ((1,), {"x": 1}),
        ((1,), {"strict": True, "names": ["a"]}),
        ((1,), {"z": 1}),
        ((-1,), {}),
    ],
)
def test_they_take_the_same_values(given: tuple[int, ...], named: dict[str, Any]) -> None:
    ours, theirs = (_classes(make)[1] for make in (dataclass, dataclasses.dataclass))
    shown, expected = (_outcome(lambda c=c: c(*given, **named)) for c in (ours, theirs))
    assert shown == expected


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_they_compare_and_hash_by_value(make: Make) -> None:
    options, point = _classes(make)
    names = ["a"]
    one = point(1, names=names)
    assert one == point(1, names=["a"])
    assert one == point(1, hidden=5, names=names)
    assert one != point(2, names=names)
    assert one != options(names=names)
    assert hash(point(1, names=())) == hash(point(1, hidden=5, names=()))


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_they_stay_as_they_are(make: Make) -> None:
    one = _classes(make)[1](1)
    with pytest.raises(FrozenInstanceError, match="x"):
        one.x = 2
    with pytest.raises(FrozenInstanceError, match="x"):
        del one.x
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_the_standard_librarys_tools_work_on_them(make: Make) -> None:
    one = _classes(make)[1](1, names=["a"])
    assert [each.name for each in fields(one)] == ["strict", "names", "x", "y", "hidden"]
    assert replace(one, x=3).x == 3
    expected = {"strict": False, "names": ["a"], "x": 1, "y": 7, "hidden": 0}
    assert asdict(one) == expected
    assert type(one).__match_args__ == ("x", "y", "hidden")


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_a_class_keeps_its_own_methods(make: Make) -> None:
    @make(frozen=True)
    class Named:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        @cached_property
        def length(self) -> int:
            return len(self.name)

    assert repr(Named("abc")) == "<abc>"
    assert Named("abc").length == 3


def test_what_may_change_is_the_standard_librarys() -> None:
    @dataclass
    class Counter:
        count: int = 0

    @dataclass(frozen=True, order=True)
    class Version:
        major: int

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    assert Version(1) < Version(2)


@pytest.mark.parametrize("kind", [Slotted, Cached])
def test_they_can_be_sent_and_copied(kind: type[Slotted]) -> None:
    one = kind(3)
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one
    if isinstance(one, Cached):
        assert one.double == 6
        assert vars(pickle.loads(pickle.dumps(one))) == {"double": 6}


def test_help_shows_the_same_arguments() -> None:
    def shown(kind: Any) -> list[object]:
        return [
            (each.name, each.kind, each.annotation)
            for each in inspect.signature(kind).parameters.values()
        ]

    ours, theirs = (_classes(make)[1] for make in (dataclass, dataclasses.dataclass))
    assert shown(ours) == shown(theirs)
    assert inspect.signature(ours).parameters["y"].default == 7
