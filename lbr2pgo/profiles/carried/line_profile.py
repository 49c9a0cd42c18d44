"""Counts of source lines, moved to where the lines of a later source tree are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from lbr2pgo.profiles.carried.account import LEAST_KEPT, Account, Way
from lbr2pgo.profiles.carried.fates import Fate, Fates, mentions, source_name
from lbr2pgo.profiles.carried.line_map import called
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, Key, Location, Name
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile, add_saturating


def carried_lines(profile: SampleProfile, successors: Successors) -> tuple[SampleProfile, Account]:
    """A profile of source lines for the new tree, and what became of its counts."""
    carrier = _Carrier(profile, successors)
    return carrier.made, carrier.account


class _Carrier:
    """Fills a new profile."""

    def __init__(self, profile: SampleProfile, successors: Successors) -> None:
        self.made = replace(profile, functions={})
        self.account = Account()
        self._fates = Fates(mentions(profile), successors, self.account)
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

    def _split_off(self, function: FunctionSamples, part: Fate) -> None:
        """Let a new function have what it took over."""
        moved = self._moved(function, part)
        if moved.body:
            moved.head = moved.body[min(moved.body)]
            _add(moved, self.made.function(self._key(moved.name)))

    def _moved(self, function: FunctionSamples, fate: Fate) -> FunctionSamples:
        made = FunctionSamples(fate.name, head=function.head, attributes=function.attributes)
        made.total = _move_body(function, made, fate)
        for location, targets in function.call_targets.items():
            for target, count in targets.items():
                place = self._call_place(fate, location, target)
                if place is not None:
                    made.add_call(place, self._fates.of(target).name, count)
        for location, callee in function.inlined():
            place = self._call_place(fate, location, callee.name)
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
            fate = self._fates.of(frame.function)
            place = self._call_place(fate, frame.location, callee.function)
            frames = [] if place is None else [*frames, Frame(fate.name, place)]
        return (*frames, Frame(self._fates.of(function.name).name)) if context else None

    def _key(self, name: Name) -> Key:
        """What a function without a caller is found by."""
        return (Frame(name),) if self.made.is_cs else name

    def _call_place(self, fate: Fate, location: Location, callee: Name) -> Location | None:
        """Where a call is now: of several lines, on that which names the callee."""
        there = fate.places(location)
        if len(there) < 2 or fate.new is None:
            return there[0] if there else None
        name = source_name(self._fates.of(callee).name)
        naming = [place for place in there if name in called(fate.new.lines[place[0]])]
        return (naming or there)[0]

    def _note(self, function: FunctionSamples, fate: Fate) -> None:
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


def _move_body(function: FunctionSamples, made: FunctionSamples, fate: Fate) -> int:
    """Give a function its counts; returns the part of the total that comes with them."""
    kept = 0
    by_line: dict[int, int] = {}
    for location, count in function.body.items():
        there = fate.places(location)
        kept += count if there else 0
        for place in there:
            made.body[place] = max(made.body.get(place, 0), count)
            by_line[place[0]] = max(by_line.get(place[0], 0), count)
    for line, neighbour in fate.filled.items():
        if neighbour in by_line:
            made.body.setdefault((line, 0), by_line[neighbour])
    own = function.total - sum(callee.total for _, callee in function.inlined())
    return max(0, own) * kept // (sum(function.body.values()) or 1)


def _is_worthless(function: FunctionSamples, fate: Fate) -> bool:
    """Whether too little is left of it to tell what is hot."""
    kept = sum(count for at, count in function.body.items() if fate.places(at))
    return not fate.parts and kept < LEAST_KEPT * sum(function.body.values())
