"""Arguments of the Python API: paths in any form, one value or several, and no unknown ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from lbr2pgo.support.output import PathLike
from lbr2pgo.support.resembling import did_you_mean

Paths = PathLike | Iterable[PathLike]
"""One path or several, each a string or an `os.PathLike`."""


def refuse_unknown(given: Mapping[str, object], kind: type, also: Collection[str] = ()) -> None:
    """Raise TypeError for a keyword that is neither in a typed dictionary nor one of these."""
    known = {*also, *kind.__annotations__}
    for name in given.keys() - known:
        raise TypeError(f"there is no argument {name}{did_you_mean(name, known)}")


def texts_of(values: object, argument: str) -> tuple[str, ...]:
    """One path or several, as they are written; raises TypeError for what is none."""
    each = [values] if isinstance(values, str | os.PathLike) else values
    if not isinstance(each, Iterable):
        raise TypeError(f"{argument}: a path or paths are needed, not {values!r}")
    return tuple(text_of(path, argument) for path in each)


def paths_of(values: object, argument: str) -> tuple[Path, ...]:
    """The same as paths."""
    return tuple(map(Path, texts_of(values, argument)))


def path_of(value: object, argument: str) -> Path:
    """One path."""
    return Path(text_of(value, argument))


def text_of(value: object, argument: str) -> str:
    """One path as it is written; raises TypeError for what is none."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{argument}: a path is needed, not {value!r}")
    return os.fspath(value)


def optional_path(value: object, argument: str) -> Path | None:
    """The same, or None."""
    return None if value is None else path_of(value, argument)


def several(values: Any) -> tuple[Any, ...]:
    """One value or several.

    >>> several("app"), several(3), several([3, 4])
    (('app',), (3,), (3, 4))
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (values,)
    return tuple(values)
