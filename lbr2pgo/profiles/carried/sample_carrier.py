"""A sample profile moved to where its places are now, whatever tells where that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

from lbr2pgo.profiles.carried.account import LEAST_KEPT, Account, Way
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, Key, Location, Name
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile, add_saturating


class SampleFate(Protocol):
    """What became of a function."""

    @property
    def name(self) -> Name:
        """What it is called now."""

    @property
    def checksum(self) -> int:
        """Of its control flow now; 0 in profiles of source lines."""

    @property
    def is_gone(self) -> bool:
        """Whether it is not there any more."""

    @property
    def parts(self) -> Sequence[SampleFate]:
        """Functions that were split off it."""

    def places(self, location: Location) -> tuple[Location, ...]:
        """Where a location is now; nowhere if it is gone."""

    def call_place(self, location: Location, callee: Name) -> Location | None:
        """Where the call of a function, by its new name, is now."""

    def way(self, location: Location) -> Way:
        """How sure it is that a location is the same one still."""

    def fill(self, body: dict[Location, int]) -> int:
        """Give counts to new places that those of others tell of.

        Returns how much more that makes in the function's total.
        """


class SampleFates(Protocol):
    """Finds out what became of functions."""

    account: Account

    def of(self, name: Name) -> SampleFate:
        """What became of a function; what is to be said of it goes into the account."""


def carried_samples(profile: SampleProfile, fates: SampleFates) -> SampleProfile:
    """The profile for the new source or build; what became of its counts goes into the account."""
    return _Carrier(profile, fates).made


class _Carrier:
    """Fills a new profile."""

    def __init__(self, profile: SampleProfile, fates: SampleFates) -> None:
        self.made = replace(profile, functions={})
        self.account, self._fates = fates.account, fates
        for function in profile.functions.values():
            carried = self._carried(function)
            if carried is not None:
                carried.context = self._context(function)
                _add(carried, self.made.function(carried.key))

    def _carried(self, function: FunctionSamples) -> FunctionSamples | None:
        """A function, or an inlined copy, with all that is inlined into it; None if it is gone."""
        fate = self._fates.of(function.name)
        if fate.is_gone or _is_worthless(function, fate):
            if not fate.is_gone:
                self.account.dropped.add(str(function.name))
            self._lose(function)
            return None
        self._note(function, fate)
        for part in fate.parts:
            self._split_off(function, part)
        return self._moved(function, fate)

    def _split_off(self, function: FunctionSamples, part: SampleFate) -> None:
        """Let a new function have what it took over."""
        moved = self._moved(function, part)
        if any(moved.body.values()):
            moved.head = moved.body[min(moved.body)]
            _add(moved, self.made.function(self._key(moved.name)))

    def _moved(self, function: FunctionSamples, fate: SampleFate) -> FunctionSamples:
        made = FunctionSamples(
            fate.name, head=function.head, attributes=function.attributes, checksum=fate.checksum
        )
        made.total = _move_body(function, made, fate)
        for location, targets in function.call_targets.items():
            for target, count in targets.items():
                name = self._fates.of(target).name
                place = fate.call_place(location, name)
                if place is not None:
                    made.add_call(place, name, count)
        for location, callee in function.inlined():
            place = fate.call_place(location, self._fates.of(callee.name).name)
            inner = None if place is None else self._carried(callee)
            if place is not None and inner is not None:
                made.total = add_saturating(made.total, inner.total)
                _add(inner, made.callee(place, inner.name))
        return made

    def _context(self, function: FunctionSamples) -> Context | None:
        """The calls that lead to a function, as far out as they are still there."""
        frames: list[Frame] = []
        context = function.context or ()
        for frame, callee in pairwise(context):
            fate, name = self._fates.of(frame.function), self._fates.of(callee.function).name
            place = fate.call_place(frame.location, name)
            frames = [] if place is None else [*frames, Frame(fate.name, place)]
        return (*frames, Frame(self._fates.of(function.name).name)) if context else None

    def _key(self, name: Name) -> Key:
        """What a function without a caller is found by."""
        return (Frame(name),) if self.made.is_cs else name

    def _note(self, function: FunctionSamples, fate: SampleFate) -> None:
        for location, count in function.body.items():
            self.account.add(str(function.name), fate.way(location), count)
        for location, callee in function.inlined():
            if fate.way(location) is Way.LOST:
                self._lose(callee)

    def _lose(self, function: FunctionSamples) -> None:
        self.account.add(str(function.name), Way.LOST, sum(function.body.values()))
        for _, callee in function.inlined():
            self._lose(callee)


def _add(function: FunctionSamples, to: FunctionSamples) -> None:
    to.attributes |= function.attributes
    to.merge(function)


def _move_body(function: FunctionSamples, made: FunctionSamples, fate: SampleFate) -> int:
    """Give a function its counts; returns the part of the total that comes with them."""
    kept = 0
    for location, count in function.body.items():
        there = fate.places(location)
        kept += count if there else 0
        for place in there:
            made.body[place] = max(made.body.get(place, 0), count)
    own = function.total - sum(callee.total for _, callee in function.inlined())
    moved = max(0, own) * kept // (sum(function.body.values()) or 1)
    return max(0, moved + fate.fill(made.body))


def _is_worthless(function: FunctionSamples, fate: SampleFate) -> bool:
    """Whether too little is left of it to tell what is hot."""
    kept = sum(count for at, count in function.body.items() if fate.places(at))
    return not fate.parts and kept < LEAST_KEPT * sum(function.body.values())
