"""The standard library's `dataclass`, but quick to make.

Before Python 3.13 that compiles half a dozen functions for every frozen class, which for the
classes of one conversion takes longer than loading NumPy. Here all classes share the functions.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, order=False, **options):
        """As the standard one; what is not frozen, or is ordered, is made by that."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, order=order, **options)
        if not frozen or order:
            return dataclasses.dataclass(cls, frozen=frozen, order=order, **options)
        shared = {name: one for name, one in _SHARED.items() if name not in vars(cls)}
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
        for name, function in shared.items():
            setattr(made, name, function)
        return made


_put = object.__setattr__


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    names = self.__match_args__
    if len(given) > len(names):
        raise TypeError(f"{_name(self)} takes {len(names)} values by position, not {len(given)}")
    values = dict(zip(names, given, strict=False))
    if twice := values.keys() & named.keys():
        raise TypeError(f"{_name(self)} got two values for {', '.join(sorted(twice))}")
    values.update(named)
    if values.keys() != self.__dataclass_fields__.keys():
        _complete(self, values)
    for name, value in values.items():
        _put(self, name, value)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _complete(self: Any, values: dict[str, Any]) -> None:
    """Add the defaults; raise TypeError for what is missing or is no field."""
    known = {each.name: each for each in fields(self)}
    if unknown := values.keys() - known.keys():
        raise TypeError(f"{_name(self)} has no {', '.join(sorted(unknown))}")
    for name in known.keys() - values.keys():
        each = known[name]
        if each.default_factory is not MISSING:
            values[name] = each.default_factory()
        elif each.default is not MISSING:
            values[name] = each.default
        else:
            raise TypeError(f"{_name(self)} lacks a value for {name}")


def _name(self: object) -> str:
    return type(self).__qualname__


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{_name(self)}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, each.name) for each in fields(self) if each.compare)


def _eq(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_compared(self))


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{_name(self)} is frozen: {name} stays as it is")


_SHARED = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
