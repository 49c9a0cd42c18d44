"""Types of data, and which of their fields is so many bytes behind their start.

Source: DWARF 5, 5.2, 5.3, 5.5, 5.7, 5.10.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from lbr2pgo.program.dwarf.dies import Die, Dies
from lbr2pgo.program.dwarf.unit import Dwarf

_ARRAY, _SUBRANGE, _FUNCTION = 0x01, 0x21, 0x15
_REFERENCES = {0x0F: " *", 0x10: " &", 0x42: " &&"}
"""To data, by reference, to a temporary."""
_ALIASES = {0x16, 0x26, 0x35, 0x37, 0x47}
"""A name, const, volatile, restrict, _Atomic."""
_RECORDS = {0x02, 0x13}
"""Classes and structs."""
_MEMBER, _BASE, _VARIANTS = 0x0D, 0x1C, 0x33
_POINTER_SIZE = 8
_LARGEST = 1 << 48
_DEEPEST = 32
"""How far types are followed: hostile ones may hold themselves."""
PADDING = "(padding)"

Type = tuple[Die, ...]
"""Its entry, and behind it what is in it; empty for none, and where it is not known."""


class DataField(NamedTuple):
    """Where in a type some data is."""

    type: str
    """As the source names it, of an array that of its elements: `entry`, `char *`."""
    field: str
    """`key`, `cells[].value`, `(padding)`; empty where the type has no fields. Of a union nobody
    can tell which member is meant: it goes no further."""


class DataTypes:
    """Types of a program's variables."""

    def __init__(self) -> None:
        self._dies = Dies()

    def of_variable(self, dwarf: Dwarf, offset: int) -> Type:
        """The type of the variable whose entry is at an offset of `.debug_info`."""
        variable = self._dies.at(dwarf, offset)
        return self._dies.type_of(variable[0]) if variable else ()

    def size(self, kind: Type, deepest: int = _DEEPEST) -> int:
        """In bytes; -1 if it is not known."""
        kind = self._bare(kind)
        if not kind or kind[0].size >= 0:
            return kind[0].size if kind else -1
        if kind[0].tag in _REFERENCES:
            return _POINTER_SIZE
        if kind[0].tag != _ARRAY or not deepest:
            return -1
        counts = self._counts(kind)
        element = self.size(self._dies.type_of(kind[0]), deepest - 1)
        known = element >= 0 and min(counts, default=-1) >= 0
        size = prod(counts) * element if known else -1
        return size if size <= _LARGEST else -1

    def element(self, kind: Type) -> Type:
        """What an array has elements of, as often as that is an array; else the type itself."""
        return self._within(kind)[0]

    def field(self, kind: Type, offset: int) -> DataField:
        """The field that holds a byte of a type which is no array."""
        name, path = self._name(kind), ""
        for _ in range(_DEEPEST):
            kind, dimensions = self._within(kind)
            if dimensions:
                path += "[]" * dimensions
                offset %= max(self.size(kind), 1)
            bare = self._bare(kind)
            if not bare or bare[0].tag not in _RECORDS or bare[0].size < 0:
                break
            member = self._member(bare, offset)
            if member is None:
                has_variants = any(entry.tag == _VARIANTS for entry in bare)
                path += "" if has_variants else f".{PADDING}"
                break
            path += f".{member.name}" if member.tag == _MEMBER and member.name else ""
            offset -= member.place
            kind = self._dies.type_of(member)
        return DataField(name, path.removeprefix("."))

    def _member(self, record: Type, offset: int) -> Die | None:
        """The member or base class that holds a byte; of several the last, as none has a place."""
        for entry in reversed(record):
            if entry.tag in (_MEMBER, _BASE) and 0 <= entry.place <= offset:
                size = self.size(self._dies.type_of(entry))
                if size < 0 or offset < entry.place + size:
                    return entry
        return None

    def _bare(self, kind: Type) -> Type:
        """A type by its own entry, whatever it was called or qualified as."""
        for _ in range(_DEEPEST):
            if not kind or kind[0].tag not in _ALIASES:
                return kind
            kind = self._dies.type_of(kind[0])
        return ()

    def _within(self, kind: Type) -> tuple[Type, int]:
        """See `element`, and how many dimensions the array has."""
        dimensions = 0
        for _ in range(_DEEPEST):
            bare = self._bare(kind)
            if not bare or bare[0].tag != _ARRAY:
                return kind, dimensions
            dimensions += max(len(self._counts(bare)), 1)
            kind = self._dies.type_of(bare[0])
        return (), dimensions

    @staticmethod
    def _counts(array: Type) -> list[int]:
        return [entry.elements for entry in array if entry.tag == _SUBRANGE]

    def _name(self, kind: Type, deepest: int = _DEEPEST) -> str:
        if not kind:
            return "void"
        if kind[0].name:
            return kind[0].name
        is_of_another = kind[0].tag in (_ARRAY, *_ALIASES, *_REFERENCES)
        if not is_of_another or not deepest:
            return "function" if kind[0].tag == _FUNCTION else "(anonymous)"
        other = self._name(self._dies.type_of(kind[0]), deepest - 1)
        return other + ("[]" if kind[0].tag == _ARRAY else _REFERENCES.get(kind[0].tag, ""))
