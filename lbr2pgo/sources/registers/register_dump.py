"""Dumps of registers: a name or an address and a value for each, as text or as JSON.

Text has one register a line, `name value`, `address value` or `name address value`, with blanks,
`:` or `=` between and `#` before comments. Addresses and values are hexadecimal, with `0x` or,
as the tool rdmsr prints them, without. JSON is an object of the same, or a list of objects with
`name` or `address`, and `value`; its plain numbers are what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, readable

SIZE_LIMIT = 1 << 20
"""Bytes; a dump of every register of a core is far smaller."""

_SEPARATORS = re.compile(r"[\s:=,]+")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]+")
_LINE_CURE = "Write a name or an address and a hexadecimal value: 0x1c9 0x5"
_ADDRESS_LIMIT, _VALUE_LIMIT = 1 << 32, 1 << 64
_COMMAND_WORDS = ("rdmsr", "msr")


@dataclass(frozen=True, slots=True)
class Register:
    """One register as it stands in the dump."""

    key: str
    """Its name in upper case, or its address as `0x…`."""
    value: int
    where: str
    """`file:line`, or `file` with the key for JSON."""


def read_text(path: Path) -> str:
    """The text of a dump; InputError if it can't be read or is too large to be one."""
    with readable(path), path.open("rb") as stream:
        data = stream.read(SIZE_LIMIT + 1)
    if len(data) > SIZE_LIMIT:
        raise InputError("is too large for a register dump", where=str(path))
    return data.decode("utf-8", "replace")


def parse(text: str, path: str) -> tuple[Register, ...]:
    """The registers of a dump in file order, doubled ones too.

    Raises InputError, naming the line or the key, for what is not a register and its value.
    """
    if text.lstrip()[:1] in ("{", "["):
        return tuple(_parse_json(text, path))
    return tuple(_parse_lines(text.splitlines(), path))


def keys_in(head: str) -> tuple[str, ...]:
    """Keys of the registers in the head of a file, if most of it looks like a dump; else none.

    Lenient, for sniffing: a broken line or a cut end doesn't hide what the file is.
    """
    if head.lstrip()[:1] in ("{", "["):
        try:
            return tuple(register.key for register in _parse_json(head, ""))
        except InputError:
            return tuple(_key_or_name(word) for word in re.findall(r'"(\w+)"', head))
    # A basic sample of BOLT's pre-aggregated text (`S 1c9 5`) may have a register's address.
    lines = [words for words in map(_words, head.splitlines()) if words and words[0] != "S"]
    found = [words[-2] for words in lines if len(words) in (2, 3) and _HEX.fullmatch(words[-1])]
    return tuple(map(_key_or_name, found)) if 2 * len(found) > len(lines) else ()


def _key_or_name(word: str) -> str:
    return f"{int(word, 16):#x}" if _HEX.fullmatch(word) else word.upper()


def _parse_lines(lines: Sequence[str], path: str) -> Iterator[Register]:
    for number, line in enumerate(lines, 1):
        words = _words(line)
        if words:
            yield _register(words, f"{path}:{number}")


def _words(line: str) -> list[str]:
    words = [word for word in _SEPARATORS.split(line.partition("#")[0]) if word]
    return words[1:] if len(words) > 2 and words[0].lower() in _COMMAND_WORDS else words


def _register(words: Sequence[str], where: str) -> Register:
    """A register of `key value` or `name address value`."""
    if len(words) not in (2, 3):
        raise InputError("is not a register and its value", where=where, cure=_LINE_CURE)
    return Register(_key(words[-2], where), _value(words[-1], where), where)


def _key(word: str, where: str) -> str:
    if not _HEX.fullmatch(word):
        return word.upper()
    if int(word, 16) >= _ADDRESS_LIMIT:
        raise InputError(f"{word} is no register's address", where=where, cure=_LINE_CURE)
    return f"{int(word, 16):#x}"


def _value(word: str, where: str) -> int:
    if not _HEX.fullmatch(word) or int(word, 16) >= _VALUE_LIMIT:
        raise InputError(
            f"{word[:40]!r} is not a hexadecimal value of 64 bits", where=where, cure=_LINE_CURE
        )
    return int(word, 16)


def _parse_json(text: str, path: str) -> Iterator[Register]:
    try:
        # Pairs, not dictionaries: a doubled register must not vanish.
        found = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:  # of syntax, or a number of endless digits
        raise InputError(f"is no valid JSON: {error}", where=path) from error
    for name, value in _json_registers(found, path):
        key = f"{name:#x}" if isinstance(name, int) else _key(str(name), path)
        yield Register(key, _json_value(value, f"{path}, {key}"), f"{path}, {key}")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs."""


def _json_registers(
    found: object, path: str, *, outermost: bool = True
) -> Iterator[tuple[object, object]]:
    if isinstance(found, _Pairs):
        for key, value in found:
            if isinstance(value, list) and outermost:  # {"cpu": 3, "msrs": {…}} and the like
                yield from _json_registers(value, path, outermost=False)
            else:
                yield key, value
        return
    for item in found if isinstance(found, list) else [found]:
        fields = dict(item) if isinstance(item, _Pairs) else {}
        name = fields.get("address", fields.get("name"))
        if name is None or "value" not in fields:
            raise InputError(
                "holds something that is not a register",
                where=path,
                cure='Write an object of names and values: {"MSR_LBR_TOS": "0x5"}',
            )
        yield name, fields["value"]


def _json_value(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < _VALUE_LIMIT:
            return value
    elif isinstance(value, str):
        return _value(value.strip(), where)
    raise InputError(f"{str(value)[:40]!r} is not a value of 64 bits", where=where)
