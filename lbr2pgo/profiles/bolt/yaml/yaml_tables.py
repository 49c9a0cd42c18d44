"""The counts of a profile in BOLT's YAML: of blocks, of their successors, and of their calls.

A function stands as its head and its blocks, of which those without counts are left out::

      - name:            main
        fid:             6
        hash:            0x4ACB2BDDE21E3268
        exec:            1
        nblocks:         16
        blocks:
          - bid:             7
            insns:           27
            hash:            0x50007EBB365E00F9
            calls:           [ { off: 0x93, fid: 9, cnt: 1, mis: 1 } ]
            succ:            [ { bid: 6, cnt: 0 }, { bid: 8, cnt: 1 } ]

Lists may be wrapped. What else a block or a function holds (probes, inline trees) is kept as text.
BOLT writes no other YAML than this, so that lines are matched: SQLite's 721 kB take 0.07 s so, and
0.6 s with libyaml's loader, which keeps no text.

Source: LLVM: bolt/include/bolt/Profile/ProfileYAMLMapping.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from lbr2pgo.profiles.bolt.yaml.yaml_text import YamlProfile
from lbr2pgo.support.errors import InputError

_FIELD = re.compile(r" *(- )?([a-z_]+): *(.*)")
_PAIR = re.compile(r"([a-z]+): *([0-9A-Za-z]+)")
_INTEGER = re.compile(r"0x[0-9A-Fa-f]{1,16}|0|[1-9][0-9]{0,19}")
_ROW = re.compile(r"\{([^{}]*)\}")
_ROWS = re.compile(r"\[ *(?:\{[^{}]*\}(?:, *\{[^{}]*\})* *)?\]")
_WIDTH = 17
"""Columns of a key with its colon (LLVM: YAMLTraits.cpp, Output::paddedKey)."""

Key = tuple[tuple[str, int], ...]
"""What tells a row from others: its numbers but for counts, by name."""
_COUNTS = ("cnt", "mis")
_LARGEST = (1 << 64) - 1


@dataclass(slots=True)
class Rows:
    """Calls or successors of a block: how often each ran, and how often it was mispredicted."""

    counts: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def add(self, key: Key, count: int, mispredicted: int) -> None:
        """Add to a row, which may be new."""
        before = self.counts.get(key, (0, 0))
        self.counts[key] = (before[0] + count, before[1] + mispredicted)

    def text(self) -> str:
        """As it stands in a file."""
        rows = (
            ", ".join(
                (
                    *(f"{name}: {_number(name, value)}" for name, value in key),
                    f"cnt: {count}",
                    *([f"mis: {mispredicted}"] if mispredicted else []),
                )
            )
            for key, (count, mispredicted) in self.counts.items()
        )
        return "[ " + ", ".join(f"{{ {row} }}" for row in rows) + " ]"


def _number(name: str, value: int) -> str:
    return f"0x{value:X}" if name in ("off", "hash") else str(value)


@dataclass(slots=True)
class Block:
    """A block, or the head of a function: numbers by their names, in the order of the file."""

    numbers: dict[str, int] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    """`calls` and `succ`."""
    others: dict[str, str] = field(default_factory=dict)
    """What is kept as text."""

    def counts(self, rows: str) -> Iterable[tuple[Key, tuple[int, int]]]:
        """Calls or successors with their counts and mispredictions."""
        return self.rows[rows].counts.items() if rows in self.rows else ()


@dataclass(slots=True)
class YamlFunction:
    """A function's counts."""

    name: str
    named: str
    """The name as it is quoted."""
    head: Block = field(default_factory=Block)
    blocks: dict[int, Block] = field(default_factory=dict)
    """By number."""

    @property
    def identity(self) -> Mapping[str, int]:
        """What two profiles of one build say alike of it."""
        return {key: n for key, n in self.head.numbers.items() if key != "exec"}


_NUMBERS = ("hash", "fid", "nblocks", "bid", "insns", "exec", "events")


def tables(profile: YamlProfile, where: str | None = None) -> dict[str, YamlFunction]:
    """All functions by name; raises InputError, which names the file, for what BOLT can't read."""
    found: dict[str, YamlFunction] = {}
    try:
        for name, lines in profile.functions:
            if name in found:
                _complain(name, lines[0])
            found[name] = _function(name, lines)
    except InputError as error:
        raise InputError(error.what, where=where, cure=error.cure) from None
    return found


def _function(name: str, lines: tuple[str, ...]) -> YamlFunction:
    function = YamlFunction(name, lines[0].partition(":")[2].strip())
    current = function.head
    for line in _whole(lines[1:]):
        match = _FIELD.fullmatch(line)
        if match is None:
            _complain(name, line)
        starts, key, value = match.groups()
        if starts:
            current = _new_block(function, line, key, value)
        _take(current, name, key, value)
    return function


def _new_block(function: YamlFunction, line: str, key: str, value: str) -> Block:
    number = _int(function.name, value)
    if key != "bid" or number in function.blocks:
        _complain(function.name, line)
    block = function.blocks[number] = Block()
    return block


def _take(block: Block, name: str, key: str, value: str) -> None:
    if key in ("calls", "succ"):
        block.rows[key] = _rows(name, value)
    elif key in _NUMBERS:
        block.numbers[key] = _int(name, value)
    elif key != "blocks":
        block.others[key] = value


def _whole(lines: tuple[str, ...]) -> Iterator[str]:
    """Lines with those that a wrapped list goes on in."""
    held = ""
    for line in lines:
        held = f"{held} {line.strip()}" if held else line
        if held.count("[") <= held.count("]"):
            yield held
            held = ""
    if held:
        yield held


def _rows(name: str, value: str) -> Rows:
    if _ROWS.fullmatch(value) is None:
        _complain(name, value)
    rows = Rows()
    for row in _ROW.findall(value):
        pairs = [_PAIR.fullmatch(part.strip()) for part in row.split(",")]
        numbers = {m[1]: _int(name, m[2]) for m in pairs if m is not None}
        if len(numbers) != len(pairs):
            _complain(name, row)
        counts = [numbers.pop(each, 0) for each in _COUNTS]
        rows.add(tuple(numbers.items()), *counts)
    return rows


def _int(name: str, text: str) -> int:
    match = _INTEGER.fullmatch(text)
    number = int(text, 0) if match is not None else -1
    if not 0 <= number <= _LARGEST:
        _complain(name, text)
    return number


def _complain(name: str, line: str) -> NoReturn:
    raise InputError(
        f"the function {name} has {line.strip()[:80]!r}, which BOLT does not write",
        cure="Make it again: lbr2pgo convert --bolt-yaml.",
    )


def written(header: tuple[str, ...], functions: Mapping[str, YamlFunction]) -> YamlProfile:
    """Functions as the lines of a file."""
    return YamlProfile(header, tuple((f.name, tuple(_lines(f))) for f in functions.values()))


def _lines(function: YamlFunction) -> Iterator[str]:
    yield f"  - {_field('name', function.named)}"
    yield from (f"    {text}" for text in _fields(function.head))
    if function.blocks:
        yield "    blocks:"
    for block in function.blocks.values():
        for number, text in enumerate(_fields(block)):
            yield ("        " if number else "      - ") + text


def _fields(block: Block) -> Iterator[str]:
    for key, value in block.numbers.items():
        yield _field(key, f"0x{value:X}" if key == "hash" else str(value))
    for key, text in block.others.items():
        yield _field(key, text)
    for key, rows in block.rows.items():
        yield _field(key, rows.text())


def _field(key: str, value: str) -> str:
    return f"{key}:".ljust(_WIDTH) + value
