"""What a run spent in each function of the source, exactly, wherever the compiler put its code.

An instruction belongs to the function it was written in, so that builds which inline differently
compare line by line; a call belongs to the function that makes it, and to the one that is entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.analyses.accuracy import exact_edges, executions
from lbr2pgo.analyses.changes import base_name
from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import U64, Bools

if TYPE_CHECKING:
    from lbr2pgo.model.exact_counts import ExactCounts
    from lbr2pgo.program.program import Program

_RETURN = BRANCH_TYPES.index("RET")
_CALLS = [BRANCH_TYPES.index(name) for name in ("CALL", "IND_CALL")]
_INDIRECT = [BRANCH_TYPES.index(name) for name in ("IND", "IND_CALL")]
NO_FUNCTION = "[no function]"


Pair = tuple[str, str]
"""A function, and what calls it."""


@dataclass(frozen=True, slots=True)
class Costs:
    """One counted run of one build."""

    instructions: Counter[str] = field(default_factory=Counter)
    """By function of the source."""
    jumps: Counter[str] = field(default_factory=Counter)
    """Taken ones between blocks, by function of the source."""
    calls: Counter[Pair] = field(default_factory=Counter)
    """Direct ones, jumps to another function's beginning among them."""
    indirect_calls: Counter[Pair] = field(default_factory=Counter)
    """Through pointers."""
    returns: Counter[Pair] = field(default_factory=Counter)
    """From either."""

    @property
    def functions(self) -> set[str]:
        """All that are named."""
        pairs = (*self.calls, *self.indirect_calls, *self.returns)
        return {*self.instructions, *self.jumps, *(name for pair in pairs for name in pair)}

    def renamed(self, names: Mapping[str, str]) -> Costs:
        """The same with other names for some functions."""
        new = {name: names.get(name, name) for name in self.functions}

        def pairs(counts: Counter[Pair]) -> Counter[Pair]:
            return Counter({(new[callee], new[by]): n for (callee, by), n in counts.items()})

        return Costs(
            Counter({new[name]: count for name, count in self.instructions.items()}),
            Counter({new[name]: count for name, count in self.jumps.items()}),
            pairs(self.calls), pairs(self.indirect_calls), pairs(self.returns),
        )  # fmt: skip


class _Names:
    """Functions of one build; `in_source` says whether debug information is to be asked."""

    def __init__(self, program: Program, *, in_source: bool) -> None:
        self._program, self._in_source = program, in_source

    def linked(self, addresses: PlacedAddresses) -> list[str]:
        """The function whose code, or a fragment of it, holds each address."""
        regions = self._program.regions
        found = regions.containing(addresses)
        rows = np.where(found >= 0, regions.parent[found], -1).tolist()
        names = {row: base_name(regions.label(row)) if row >= 0 else "" for row in set(rows)}
        return [names[row] or NO_FUNCTION for row in rows]

    def source(self, addresses: PlacedAddresses, linked: list[str] | None = None) -> list[str]:
        """The function that the code at each address was written in, else the one it lies in.

        That is `linked`, where it is known already.
        """
        linked = self.linked(addresses) if linked is None else linked
        if not self._in_source:
            return linked
        frames = self._program.debug_info().frames(addresses)
        names = [base_name(name) for name in frames.names]
        ends, sizes = frames.offsets[1:], np.diff(frames.offsets)
        leaves = np.append(frames.function, -1)[np.where(sizes > 0, ends - 1, -1)].tolist()
        return [
            (names[leaf] if leaf >= 0 else "") or known
            for leaf, known in zip(leaves, linked, strict=True)
        ]


def costs(exact: ExactCounts, image: int, program: Program, *, in_source: bool) -> Costs:
    """Lay exact counts over the program, image number `image` of them.

    `in_source`: by functions of the source, which debug information tells; else by symbols, as for
    a program that was laid out after the link.
    """
    names = _Names(program, in_source=in_source)
    found = Costs()
    _add_instructions(found, exact, image, program, names)
    _add_transfers(found, exact, image, program, names)
    return found


def _add_instructions(
    found: Costs, exact: ExactCounts, image: int, program: Program, names: _Names
) -> None:
    source, target = placed_addresses(exact.from_), placed_addresses(exact.to)
    inside = exact.from_image == image, exact.to_image == image
    edges = exact_edges(source, target, *inside, exact.count)
    touched = np.unique(np.concatenate((source[inside[0]], target[inside[1]])))
    code = program.instructions_for(placed_addresses(touched))
    executed = executions(edges, code)
    ran = np.flatnonzero(executed)
    functions = names.source(placed_addresses(code.address[ran]))
    for name, count in zip(functions, executed[ran].tolist(), strict=True):
        found.instructions[name] += count


def _add_transfers(
    found: Costs, exact: ExactCounts, image: int, program: Program, names: _Names
) -> None:
    rows = np.flatnonzero(exact.taken & (exact.from_image == image))
    source, target = placed_addresses(exact.from_[rows]), placed_addresses(exact.to[rows])
    is_inside, kind, count = exact.to_image[rows] == image, exact.kind[rows], exact.count[rows]
    outside = [f"[{exact.images[i].rpartition('/')[2]}]" for i in exact.to_image[rows].tolist()]
    comes_back = kind == _RETURN
    is_call = ~comes_back & (
        np.isin(kind, _CALLS) | ~is_inside | _enters_another(program, source, target)
    )
    entered = _inside_or(names.linked(target), outside, is_inside)
    # What is left is the function of the call, which ends where the return goes.
    called_from = _inside_or(names.source(_before(target)), outside, is_inside)
    is_indirect = np.isin(kind, _INDIRECT)
    linked = names.linked(source)
    columns = (
        names.source(source, linked), linked, entered, called_from,
        comes_back.tolist(), is_call.tolist(), is_indirect.tolist(), count.tolist(),
    )  # fmt: skip
    for here, frame, callee, caller, back, call, indirect, times in zip(*columns, strict=True):
        if back:
            found.returns[frame, caller] += times
        elif call:
            (found.indirect_calls if indirect else found.calls)[callee, here] += times
        else:
            found.jumps[here] += times


def _before(addresses: U64) -> PlacedAddresses:
    return placed_addresses(np.maximum(addresses, np.uint64(1)) - np.uint64(1))


def _inside_or(names: list[str], outside: list[str], is_inside: Bools) -> list[str]:
    rows = zip(names, outside, is_inside.tolist(), strict=True)
    return [name if here else other for name, other, here in rows]


def _enters_another(program: Program, source: PlacedAddresses, target: PlacedAddresses) -> Bools:
    """(n,): whether a branch goes to the beginning of another function: a tail call."""
    regions = program.regions
    to = regions.containing(target)
    is_start = (to >= 0) & (regions.start[to] == target) & (regions.parent[to] == to)
    other: Bools = is_start & (regions.parent[to] != regions.parent[regions.containing(source)])
    return other
