"""Profiles in BOLT's YAML added up, as `merge-fdata` does.

Files go together whose headers say alike what kind of counts they hold and how blocks are numbered
and hashed; a function must be the same code in all of them. Blocks, calls and successors of one
identity are one in the sum.

Source: BOLT, bolt/tools/merge-fdata/merge-fdata.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lbr2pgo.profiles.bolt.yaml.yaml_tables import Block, YamlFunction, tables, written
from lbr2pgo.profiles.bolt.yaml.yaml_text import YamlProfile
from lbr2pgo.profiles.reader import Merged
from lbr2pgo.support.errors import InputError

_ALIKE = ("profile-version", "profile-flags", "dfs-order", "hash-func")
"""Fields of the header that are the same in files that go together."""
_SUMMED = ("exec", "events")


def merged(files: Iterable[tuple[YamlProfile, int]]) -> Merged[YamlProfile]:
    """The sum of files times their weights, with the header of the first."""
    header: tuple[str, ...] = ()
    total: dict[str, YamlFunction] = {}
    for content, weight in files:
        header = header or content.header
        _refuse_apart(header, content.header)
        for name, function in tables(content).items():
            _add(total.setdefault(name, YamlFunction(name, function.named)), function, weight)
    return Merged(written(header, total))


def _refuse_apart(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    for field in _ALIKE:
        said = [_field(header, field) for header in (one, other)]
        if said[0] != said[1]:
            raise InputError(f"BOLT YAML with {field} {said[0]} and {said[1]} can't be merged")


def _field(header: tuple[str, ...], name: str) -> str:
    pattern = re.compile(rf" +{name}: *(.*)")
    return next((match[1] for line in header if (match := pattern.fullmatch(line))), "unknown")


def _add(total: YamlFunction, other: YamlFunction, weight: int) -> None:
    if total.head.numbers and total.identity != other.identity:
        raise InputError(
            f"the function {other.name} is other code here",
            cure="Merge profiles of one build; llvm-bolt takes those of others one by one.",
        )
    _add_block(total.head, other.head, weight)
    for number, block in other.blocks.items():
        _add_block(total.blocks.setdefault(number, Block()), block, weight)
    total.blocks = dict(sorted(total.blocks.items()))


def _add_block(total: Block, other: Block, weight: int) -> None:
    for key, value in other.numbers.items():
        before = total.numbers.get(key, 0)
        total.numbers[key] = before + value * weight if key in _SUMMED else value
    for key, text in other.others.items():
        total.others.setdefault(key, text)
    for key, rows in other.rows.items():
        mine = total.rows.setdefault(key, type(rows)())
        for row, (count, mispredicted) in rows.counts.items():
            mine.add(row, count * weight, mispredicted * weight)
