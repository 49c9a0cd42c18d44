"""What a search tries, stage by stage: each depends on what those before have found.

Kinds whose plain sibling is far behind are not trained apart. The best ones are refined, by one
thing each and by all at once that helped; what is best then is refined further, until that helps
nothing. Only the best are laid out anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from lbr2pgo.pgo.kinds import INSTRUMENTED, TRAINING_FLAGS, ProfileKind
from lbr2pgo.pgo.ranking import Ranking
from lbr2pgo.pgo.search_options import SearchOptions
from lbr2pgo.pgo.time_left import LAID_OUT, Stage

_HOPELESS = 1.05
"""A kind that costs so much more than the best one does not win by training flags."""
_NEAR = 1.01
"""What costs so much more than the best may be better once it is refined."""
Chain = Sequence[ProfileKind]
"""Kinds that use builds of those before."""


class Stages:
    """Of one search. Each is made when it is taken: by then the one before has been counted."""

    def __init__(self, options: SearchOptions, ranking: Ranking) -> None:
        self._options, self._ranking = options, ranking

    def __iter__(self) -> Iterator[tuple[Stage, list[Chain]]]:
        """What of each stage was not to be tried before; the ranking is told of it."""
        for stage, chains in self._all():
            known = self._ranking.kinds
            new = [chain for chain in chains if any(kind.name not in known for kind in chain)]
            known.update((kind.name, kind) for chain in new for kind in chain)
            yield stage, new

    def _all(self) -> Iterator[tuple[Stage, Iterator[Chain]]]:
        yield "shipped", self._shipped()
        yield "trained", self._trained()
        bases = self._unrefined()
        while bases:
            yield "refined", self._refined(bases)
            yield "combined", self._combined(bases)
            bases = self._grown(bases)
        yield "laid out", self._laid_out()

    def _shipped(self) -> Iterator[Chain]:
        yield self._options.kinds[:1]
        yield self._options.kinds[1:]
        if self._options.loop.instrumented:
            yield [INSTRUMENTED]

    def _trained(self) -> Iterator[Chain]:
        """With training flags, what is not hopeless without them, and what that needs."""
        counted = filter(self._ranking.is_counted, self._options.kinds)
        cost = {each: self._ranking.ratio(each) for each in counted}
        near = [each for each in cost if cost[each] <= min(cost.values()) * _HOPELESS]
        for told in (self._options.kinds[:1], self._options.kinds[1:]):
            wanted = max((number for number, each in enumerate(told, 1) if each in near), default=0)
            yield [replace(each, training=TRAINING_FLAGS) for each in told[:wanted]]

    def _refined(self, bases: Sequence[ProfileKind]) -> Iterator[Chain]:
        """By whatever pays in some programs; GCC knows none of it."""
        for each in bases if self._options.loop.compiler == "clang" else ():
            yield from ([refined] for refined in each.refinements(self._options.loop.layout))

    def _combined(self, bases: Sequence[ProfileKind]) -> Iterator[Chain]:
        """With all flags at once that made a kind better one by one."""
        for each in bases:
            cost = self._ranking.ratio(each)
            better = (kind for kind in self._ranking.compiled() if self._ranking.ratio(kind) < cost)
            together = each.together(kind for kind in better if kind.extends(each))
            if together is not None:
                yield [together]

    def _grown(self, bases: Sequence[ProfileKind]) -> list[ProfileKind]:
        """The best of all if it is one of these refined: by more each time, so this ends."""
        best = self._ranking.best()
        return [best] if best is not None and any(map(best.extends, bases)) else []

    def _unrefined(self) -> list[ProfileKind]:
        """The best kinds as they are made first: all that cost about the same, each code once."""
        unrefined = (kind for kind in self._ranking.compiled() if not kind.refined)
        cost = {each: self._ranking.ratio(each) for each in self._ranking.each_code_once(unrefined)}
        return [each for each in cost if cost[each] <= min(cost.values()) * _NEAR]

    def _laid_out(self) -> Iterator[Chain]:
        """Anew, the best that the compiler made, each once: flags may have changed nothing."""
        layout = self._options.loop.layout
        best = islice(self._ranking.each_code_once(self._ranking.compiled()), LAID_OUT)
        yardstick = filter(self._ranking.is_counted, [INSTRUMENTED])
        for each in (*best, *yardstick) if layout else ():
            yield [replace(each, layout=layout)]
