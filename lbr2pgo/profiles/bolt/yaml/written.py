"""Written profiles in BOLT's YAML: recognised, read, shown as text, and asked as fdata.

They are added up as `merge-fdata` does. Files go together whose headers say alike what kind of
counts they hold and how blocks are numbered and hashed; a function must be the same code in all of
them. Blocks, calls and successors of one identity are one in the sum.

Source: BOLT, bolt/tools/merge-fdata/merge-fdata.cpp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_tables import UNKNOWN, Fdata
from lbr2pgo.profiles.bolt.fdata.written import FDATA, PER_SAMPLE
from lbr2pgo.profiles.bolt.yaml import yaml_text
from lbr2pgo.profiles.bolt.yaml.placed_yaml import fdata_of_yaml
from lbr2pgo.profiles.bolt.yaml.yaml_tables import Block, YamlFunction, tables, written
from lbr2pgo.profiles.bolt.yaml.yaml_text import YamlProfile
from lbr2pgo.profiles.reader import Merged, Merging, Reader
from lbr2pgo.profiles.weights import CallSite, ProfileWeights
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.carried.account import Account

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


def weights(content: YamlProfile) -> ProfileWeights:
    """Of functions, how often they were entered and how often a block followed another."""
    every = tables(content)
    names = {each.head.numbers.get("fid"): name for name, each in every.items()}
    functions: Counter[str] = Counter()
    calls: Counter[CallSite] = Counter()
    for caller, function in every.items():
        functions[caller] += function.head.numbers.get("exec", 0)
        for number, block in function.blocks.items():
            functions[caller] += sum(count for _, (count, _) in block.counts("succ"))
            for key, (count, _) in block.counts("calls"):
                called = dict(key)
                callee = names.get(called.get("fid"), UNKNOWN)
                place = f"block {number} + {called.get('off', 0):#x}"
                calls[CallSite(caller, place, callee)] += count
    return ProfileWeights(YamlReader.kind, dict(functions), dict(calls), PER_SAMPLE)


class YamlReader(Reader[YamlProfile]):
    """See `Reader`."""

    kind = "BOLT YAML"
    has_counts = True
    merging = Merging(merged, yaml_text.write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return yaml_text.is_yaml(head)

    def read(self, path: Path) -> YamlProfile:
        """See `Reader`."""
        return yaml_text.read(path)

    def lines(self, content: YamlProfile) -> Iterator[str]:
        """See `Reader`."""
        return yaml_text.lines(content)

    def of_function(self, content: YamlProfile, function: str) -> Iterator[str] | None:
        """Lines of a function; None if it is not there.

        A local one is found without what BOLT puts behind its name (`name/file.c/1`), too.
        """
        held = content.functions
        found = [own for name, own in held if function in (name, name.partition("/")[0])]
        return (line for own in found for line in own) if found else None

    def functions(self, content: YamlProfile) -> tuple[str, ...]:
        """All names."""
        return tuple(name for name, _ in content.functions)

    def weights(self, content: YamlProfile) -> ProfileWeights:
        """See `Reader`."""
        return weights(content)

    def placed(
        self, content: YamlProfile, program: Program, where: str
    ) -> tuple[Reader[Fdata], Fdata]:
        """Blocks have numbers alone: see `placed_yaml`."""
        return FDATA, fdata_of_yaml(content, program, where)

    def carried_to_build(
        self, content: YamlProfile, old: Program, new: Program, where: str
    ) -> tuple[YamlProfile, Account]:
        """See `Reader`; llvm-bolt makes it anew, raises MissingToolError without it."""
        from lbr2pgo.profiles.bolt.tool import needed_bolt, yaml_of_fdata
        from lbr2pgo.profiles.carried.carried_fdata import carried_fdata

        tool = needed_bolt()
        moved, account = carried_fdata(fdata_of_yaml(content, old, where), old, new)
        made = yaml_of_fdata(tool, new.image.path, partial(fdata_text.write, moved))
        return yaml_text.parse(made, where), account


YAML = YamlReader()
