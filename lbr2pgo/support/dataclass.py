"""The standard library's `dataclass`, but quick to make.

That compiles half a dozen functions for every class, 0.5 ms for a frozen one (Python 3.11 to 3.13),
and describes its fields in 0.05 ms: for the 161 classes of one conversion a fifth of its CPU, more
than loading NumPy. Here all classes share the functions, and fields are described when something
asks for that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
    from inspect import Signature
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, order=False):
        """As the standard one; what is ordered is made by that.

        Annotations have to be strings, as `from __future__ import annotations` makes them. What
        inherits from a class that is made here has to be made here, too, and the other way round.
        """
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, kw_only=kw_only, order=order)
        if order:
            return dataclasses.dataclass(
                cls, frozen=frozen, slots=slots, kw_only=kw_only, order=order
            )
        functions = {**_SHARED, **(_FROZEN if frozen else _CHANGING)}
        added = {name: one for name, one in functions.items() if name not in vars(cls)}
        added |= _own_and_inherited(cls, kw_only)
        return _in_slots(cls, added) if slots else _in_place(cls, added)


_put = object.__setattr__


def _own(cls: Any) -> tuple[str, ...]:
    """The names of the fields that a class adds to those of its bases, or changes."""
    kinds = cls.__annotations__.items()
    return tuple(name for name, kind in kinds if not kind.startswith("ClassVar["))


def _own_and_inherited(cls: Any, is_kw_only: bool) -> dict[str, Any]:
    """What a class knows of its fields: their defaults, and which are given by position."""
    bases = [vars(base) for base in cls.__mro__[:0:-1] if "_defaults" in vars(base)]
    defaults: dict[str, Any] = {}
    by_position: dict[str, None] = {}
    for base in bases:
        defaults |= base["_defaults"]
        by_position |= dict.fromkeys(base["__match_args__"])
    own = _own(cls)
    defaults |= {name: vars(cls).get(name, MISSING) for name in own}
    if not is_kw_only:
        by_position |= dict.fromkeys(own)
    return {"_defaults": defaults, "__match_args__": tuple(by_position)}


def _in_slots(cls: Any, added: dict[str, Any]) -> Any:
    """A class like this one with slots for its fields, which only a new class can be given."""
    own = _own(cls)
    left_out = {*own, "__dict__", "__weakref__"}
    space = {name: value for name, value in vars(cls).items() if name not in left_out}
    made = type(cls)(cls.__name__, cls.__bases__, {**space, **added, "__slots__": own})
    made.__qualname__ = cls.__qualname__
    return made


def _in_place(cls: Any, added: dict[str, Any]) -> Any:
    for name, value in added.items():
        setattr(cls, name, value)
    for name in _own(cls):
        if isinstance(vars(cls).get(name), Field):
            delattr(cls, name)
    return cls


class _Described:
    """What the standard library's functions look up, made when one of them does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _: object, kind: Any) -> Any:
        return getattr(_described(_made_here(kind)), self._name)


def _made_here(kind: Any) -> Any:
    """The class itself, or the one that it inherits from and that is a dataclass."""
    return next(each for each in kind.__mro__ if "_defaults" in vars(each))


@cache
def _described(cls: Any) -> Any:
    """A plain class with the same fields, which the standard library has seen."""
    own = _own(cls)
    kinds = {name: cls.__annotations__[name] for name in own}
    space = {"__annotations__": kinds, "__module__": cls.__module__, "__doc__": cls.__doc__}
    space |= {name: cls._defaults[name] for name in own if cls._defaults[name] is not MISSING}
    bases = tuple(_described(_made_here(b)) for b in cls.__bases__ if hasattr(b, "_defaults"))
    is_kw_only = not set(own) <= set(cls.__match_args__)
    plain = type(cls.__name__, bases, space)
    return dataclasses.dataclass(plain, init=False, repr=False, eq=False, kw_only=is_kw_only)


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    """What two of a kind are compared by."""
    names = [each.name for each in fields(kind) if each.compare]
    return attrgetter(*names) if names else lambda _: ()


def _init(self: Any, /, *given: Any, **named: Any) -> None:
    names = self.__match_args__
    if len(given) > len(names):
        raise TypeError(f"{_name(self)} takes {len(names)} values by position, not {len(given)}")
    values = dict(zip(names, given, strict=False))
    if twice := values.keys() & named.keys():
        raise TypeError(f"{_name(self)} got two values for {', '.join(sorted(twice))}")
    values.update(named)
    if values.keys() != self._defaults.keys():
        _complete(self, values)
    for name, value in values.items():
        _put(self, name, value)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _complete(self: Any, values: dict[str, Any]) -> None:
    """Add the defaults; raise TypeError for what is missing or is no field."""
    if unknown := values.keys() - self._defaults.keys():
        raise TypeError(f"{_name(self)} has no {', '.join(sorted(unknown))}")
    for name, default in self._defaults.items():
        if name not in values:
            values[name] = _value(default)
            if values[name] is MISSING:
                raise TypeError(f"{_name(self)} lacks a value for {name}")


def _value(default: Any) -> Any:
    """What a field has that is not given; MISSING if it has to be."""
    if not isinstance(default, Field):
        return default
    return default.default if default.default_factory is MISSING else default.default_factory()


def _name(self: object) -> str:
    return type(self).__qualname__


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{_name(self)}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = _compared(self.__class__)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_compared(self.__class__)(self))


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{_name(self)} is frozen: {name} stays as it is")


def _set_state(self: object, state: Any) -> None:
    """For `pickle` and `copy`; values in slots stand beside the others."""
    for values in state if isinstance(state, tuple) else (state,):
        for name, value in (values or {}).items():
            _put(self, name, value)


class _Signature:
    """What `help` shows of the arguments."""

    def __get__(self, _: object, kind: Any) -> Signature:
        from inspect import Parameter, Signature

        made = []
        for each in fields(kind):
            how = Parameter.KEYWORD_ONLY if each.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = Parameter.empty if each.default is MISSING else each.default
            if each.default_factory is not MISSING:
                default = ...
            made.append(Parameter(each.name, how, default=default, annotation=each.type))
        return Signature(sorted(made, key=lambda each: each.kind), return_annotation=None)


_SHARED = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__signature__": _Signature(),
    "__dataclass_fields__": _Described("__dataclass_fields__"),
    "__dataclass_params__": _Described("__dataclass_params__"),
}
_FROZEN = {
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__setstate__": _set_state,
}
_CHANGING = {"__hash__": None}
