"""Values that JSON tells, as the records that they are told of want them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def typed_fields(kind: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    """Values of fields of a record; raises TypeError or KeyError for what can't be one."""
    kinds = get_type_hints(kind)
    return {name: typed(kinds[name], value) for name, value in dict(told).items()}


def typed(kind: Any, value: Any) -> Any:
    """A value of JSON as one of a type; raises TypeError or KeyError where it is none.

    >>> typed(tuple[int, int | None], [1, None]), typed(frozenset[str], ["a"])
    ((1, None), frozenset({'a'}))
    """
    if kind is Any:
        return value
    if is_dataclass(kind):
        make: Any = kind
        return make(**typed_fields(kind, value))
    origin = get_origin(kind)
    if origin is None and type(value) is kind:
        return value
    if origin in _WAYS:
        return _WAYS[origin](get_args(kind), value)
    raise TypeError(f"{value!r} is no {kind}")


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        with suppress(TypeError):
            return typed(kind, value)
    raise TypeError(f"{value!r} is none of {kinds}")


def _choice(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        raise TypeError(f"{value!r} is none of {choices}")
    return value


def _row(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    values = typed(list, value)
    each = kinds[:1] * len(values) if kinds[-1] is ... else kinds
    if len(each) != len(values):
        raise TypeError(f"{len(values)} values are not {len(each)}")
    return tuple(map(typed, each, values))


def _set(kinds: tuple[Any, ...], value: Any) -> frozenset[Any]:
    return frozenset(_row((*kinds, ...), value))


def _object(kinds: tuple[Any, ...], value: Any) -> dict[str, Any]:
    return {name: typed(kinds[1], each) for name, each in typed(dict, value).items()}


_WAYS = {
    Union: _one_of, UnionType: _one_of, Literal: _choice, tuple: _row, frozenset: _set,
    Mapping: _object,
}  # fmt: skip
