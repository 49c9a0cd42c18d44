"""A new sample profile laid onto an old one: numbers that differ by no more than chance stay.

Two trainings of one program never count alike, so that a fresh profile is another one in each of
its lines. Here each number is compared with what it was, as shares of all counts, and the old one
stays where chance explains the difference, among as many as there are. So do calls and inlined
copies that one of both has not met; but a function that is other code now (its locations or its
checksum are others) is as the new one has it.

How much longer one training ran is told by the weighted median of the ratios of counts, and not by
totals: a function that got heavier takes no share from others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lbr2pgo.analyses.confidence import difference, for_all, wilson
from lbr2pgo.profiles.llvm.sample_names import Key, Location, Name
from lbr2pgo.profiles.llvm.sample_profile import (
    DUPLICATED_INTO_BASE,
    LARGEST_COUNT,
    LARGEST_LINE,
    FunctionSamples,
    SampleProfile,
)
from lbr2pgo.profiles.llvm.sample_weights import weights, with_inlined
from lbr2pgo.profiles.llvm.stable import step_below
from lbr2pgo.support.arrays import F64, Bools
from lbr2pgo.support.dataclass import dataclass


class Item(NamedTuple):
    """A number of a function or an inlined copy."""

    field: str
    """Of `FunctionSamples`."""
    location: Location | None = None
    name: Name | None = None


_TOTAL = Item("total")
_BEFORE = LARGEST_LINE // 2
"""Locations above are of lines before the function."""

Place = tuple[Key, tuple[tuple[Location, Name], ...]]
"""A function, and from it down to an inlined copy where each is inlined, and of what."""
Copies = Mapping[Place, FunctionSamples]


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled profile."""

    profile: SampleProfile
    changed: tuple[str, ...]
    """Functions that are otherwise than in the old one, by name."""
    functions: int
    """Of the old profile and the settled one together."""

    @property
    def verdict(self) -> str:
        """In a sentence."""
        return f"{len(self.changed):,} of {self.functions:,} functions changed"

    def __repr__(self) -> str:
        return f"<Settled: {self.verdict}>"


def settle(new: SampleProfile, old: SampleProfile, *, is_exact: bool = False) -> Settled:
    """The new profile with the old one's numbers where chance explains the difference.

    With `is_exact` neither has chance in it. Both are of one kind (`Weights.kind`).
    """
    sides = _Sides(new, old, is_exact=is_exact)
    settled = replace(new, functions={}, symbols=None)
    made: dict[Place, FunctionSamples] = {}
    for place in sides.places():
        key, inner = place
        found = sides.settled(place)
        if (found is None) == (place in sides.old):  # it came, or went, and all that hold it change
            for outer in ((key, inner[:depth]) for depth in range(len(inner))):
                if outer in made and outer in sides.new:
                    made[outer].total = sides.scaled(sides.new[outer].total)
        if found is None:
            continue
        made[place] = found
        if inner:
            location, name = inner[-1]
            made[key, inner[:-1]].callsites.setdefault(location, {})[name] = found
        else:
            settled.functions[key] = found
    keys = settled.functions.keys() | old.functions.keys()
    changed = {
        str(key if not isinstance(key, tuple) else key[-1].function)
        for key in keys
        if settled.functions.get(key) != old.functions.get(key)
    }
    return Settled(settled, tuple(sorted(changed)), len(keys))


class _Sides:
    """Both profiles, and which numbers of theirs differ by more than chance."""

    def __init__(self, new: SampleProfile, old: SampleProfile, *, is_exact: bool) -> None:
        moved = {key: _as_now(each, new.functions.get(key)) for key, each in old.functions.items()}
        self.new, self.old = dict(_copies(new.functions)), dict(_copies(moved))
        self._is_exact, self._is_decided = is_exact, new.is_preinlined
        rows = [
            (place, item) for place in self.places()
            for item in {**_items(self.old.get(place)), **_items(self.new.get(place))}
        ]  # fmt: skip
        heavy = [weights(profile) for profile in (old, new)]
        names = [*dict.fromkeys((*heavy[0].functions, *heavy[1].functions))]
        counts = np.array(
            [[*(_number(side.get(place), item) for place, item in rows),
              *(of.functions.get(name, 0) for name in names)]
             for side, of in ((self.old, heavy[0]), (self.new, heavy[1]))], np.float64
        )  # fmt: skip
        self._scale = _scale(*counts[:, : len(rows)])
        counts[1] /= self._scale
        samples = [of.samples or 1 for of in heavy]
        sure = (
            counts[0] != counts[1] if is_exact
            else _are_sure(counts / max(heavy[0].total, 1), *samples)
        )  # fmt: skip
        self._sure = {rows[i] for i in np.flatnonzero(sure[: len(rows)]).tolist()}
        self._sure_names = {names[i] for i in np.flatnonzero(sure[len(rows) :]).tolist()}

    def places(self) -> list[Place]:
        """Those of either side, functions before what is inlined into them."""
        return sorted({**self.old, **self.new}, key=lambda place: len(place[1]))

    def settled(self, place: Place) -> FunctionSamples | None:
        """What is there in the settled profile; None if it is nothing."""
        old, new = self.old.get(place), self.new.get(place)
        if old is None or new is None:
            chosen = new if self._goes_by_new(place) else old
            return chosen and self._as_it_is(chosen, is_new=chosen is new)
        if _is_other_code(old, new):
            return self._as_it_is(new, is_new=True)
        before, after = _items(old), _items(new)
        sure = {item for item in {**before, **after} if self._differs(place, item)} - {_TOTAL}
        if sure:  # else none of the numbers that it is the sum of has changed
            sure.add(_TOTAL)
        found = _empty(old)
        for item in {**before, **after}:
            if item in sure and item in after:
                _put(found, item, self.scaled(after[item]))
            elif item not in sure and item in before:
                _put(found, item, before[item])
        return found

    def _goes_by_new(self, place: Place) -> bool:
        """Whether the new side decides of what only one side has.

        Of what is inlined together, the outermost of these copies decides. A pre-inliner's are
        there by decisions that chance may turn: all copies of a function tell if it changed.
        """
        key, inner = place
        for depth in range(len(inner) + 1):
            outer = key, inner[:depth]
            if (outer in self.old) != (outer in self.new):
                parent = key, inner[: depth - 1]
                if depth > 0 and _is_other_code(self.old[parent], self.new[parent]):
                    return True
                if self._is_decided:
                    copy = self.old.get(outer) or self.new[outer]
                    return str(copy.name) in self._sure_names
                return (outer, _TOTAL) in self._sure
        raise AssertionError("one side has it")

    def _differs(self, place: Place, item: Item) -> bool:
        """Whether a number is another one; of a call that a pre-inliner may take, the callee's."""
        is_decided = self._is_decided and item.field == "call_targets"
        if is_decided and not all(_number(side[place], item) for side in (self.old, self.new)):
            return str(item.name) in self._sure_names
        return (place, item) in self._sure

    def _as_it_is(self, function: FunctionSamples, *, is_new: bool) -> FunctionSamples:
        found = _empty(function)
        for item, count in _items(function).items():
            _put(found, item, self.scaled(count) if is_new else count)
        return found

    def scaled(self, count: int) -> int:
        """A new count as the old training would have it; at most what a profile can hold."""
        if self._is_exact and self._scale == 1:
            return count
        return step_below(min(round(count / self._scale), LARGEST_COUNT))


def _as_now(old: FunctionSamples, new: FunctionSamples | None) -> FunctionSamples:
    """The old function with the line 0 of compilers, and lines above it, where they are now.

    Locations count from a function's first line, and wrap around for those before it: they move
    with every line that comes or goes above the function.
    """
    if new is None:
        return old
    places = [[place for place in _places(each) if place[0] > _BEFORE] for each in (old, new)]
    is_alike = [d for _, d in places[0]] == [d for _, d in places[1]]
    now = dict(zip(*places, strict=True)) if is_alike else {}
    callsites: dict[Location, dict[Name, FunctionSamples]] = {}
    for location, callees in old.callsites.items():
        at = now.get(location, location)
        there = new.callsites.get(at, {})
        callsites[at] = {name: _as_now(each, there.get(name)) for name, each in callees.items()}
    return replace(
        old,
        body={now.get(at, at): count for at, count in old.body.items()},
        call_targets={now.get(at, at): counts for at, counts in old.call_targets.items()},
        vtables={now.get(at, at): counts for at, counts in old.vtables.items()},
        callsites=callsites,
    )


def _places(function: FunctionSamples) -> list[Location]:
    """Locations of all kinds, in order."""
    f = function
    return sorted({*f.body, *f.call_targets, *f.vtables, *f.callsites})


def _copies(functions: Mapping[Key, FunctionSamples]) -> Iterator[tuple[Place, FunctionSamples]]:
    waiting: list[tuple[Place, FunctionSamples]] = [
        ((key, ()), function) for key, function in functions.items()
    ]
    while waiting:
        (key, inner), function = waiting.pop()
        yield (key, inner), function
        waiting += [((key, (*inner, (location, callee.name))), callee)
                    for location, callee in function.inlined()]  # fmt: skip


def _items(function: FunctionSamples | None) -> dict[Item, int]:
    if function is None:
        return {}
    found = {_TOTAL: function.total, Item("head"): function.head}
    found |= {Item("body", location): count for location, count in function.body.items()}
    for field in ("call_targets", "vtables"):
        for location, counts in getattr(function, field).items():
            found |= {Item(field, location, name): count for name, count in counts.items()}
    return found


def _number(function: FunctionSamples | None, item: Item) -> int:
    """An item of a function, as it is compared; 0 where it is not there.

    Totals count instructions, of which a sample meets hundreds, all alike: the sum of its locations
    stands for that of a function.
    """
    if function is None:
        return 0
    if item == _TOTAL:
        return sum(sum(each.body.values()) for each in with_inlined(function, DUPLICATED_INTO_BASE))
    value = getattr(function, item.field)
    if item.location is None:
        return int(value)
    found = value.get(item.location, 0)
    return int(found if item.name is None else (found or {}).get(item.name, 0))


def _put(function: FunctionSamples, item: Item, count: int) -> None:
    if item.location is None:
        setattr(function, item.field, count)
    elif item.name is None:
        function.body[item.location] = count
    else:
        getattr(function, item.field).setdefault(item.location, {})[item.name] = count


def _empty(function: FunctionSamples) -> FunctionSamples:
    return FunctionSamples(
        function.name, checksum=function.checksum, attributes=function.attributes,
        context=function.context,
    )  # fmt: skip


def _is_other_code(old: FunctionSamples, new: FunctionSamples) -> bool:
    """By the checksums, or by the locations, which a profile has all of where anything ran."""
    if old.checksum and new.checksum:
        return old.checksum != new.checksum
    return bool(old.total and new.total) and old.body.keys() != new.body.keys()


def _scale(old: F64, new: F64) -> float:
    """By how much the new counts are larger where nothing changed."""
    both = (old > 0) & (new > 0)
    if not both.any():
        return 1.0
    ratio, weight = new[both] / old[both], old[both] / old.sum() + new[both] / new.sum()
    order = np.argsort(ratio)
    half = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return float(ratio[order][half])


def _are_sure(shares: F64, old_samples: int, new_samples: int) -> Bools:
    """(n,): whether shares (2, n), of the old and the new, differ by more than chance."""
    old, new = np.minimum(shares, 1.0)
    z = for_all(len(old))
    low, high = difference(new, wilson(new, new_samples, z), old, wilson(old, old_samples, z))
    sure: Bools = (low > 0) | (high < 0)
    return sure
