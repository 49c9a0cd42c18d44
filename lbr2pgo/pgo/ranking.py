"""Kinds of profiles that a search has tried, ranked by what they cost the commands that judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lbr2pgo.pgo.kinds import INSTRUMENTED, ProfileKind
from lbr2pgo.pgo.results import PLAIN, Results
from lbr2pgo.pgo.timing import BY_CHANCE

_NO_MATTER = 1.001
"""What costs so much more is no worse."""


class Ranking:
    """Told of all kinds that are to be tried; `results` get their costs meanwhile."""

    def __init__(
        self, results: Results, judges: Sequence[str], digest: Callable[[ProfileKind], str]
    ) -> None:
        self.kinds: dict[str, ProfileKind] = {}
        """By their names, what is simplest first."""
        self.digest = digest
        """Of a kind's code."""
        self._results, self._judges = results, judges

    def best(self, commands: Sequence[str] = ()) -> ProfileKind | None:
        """What costs least with some commands, or those that judge; None for the plain build.

        Of those that hardly differ, the one that asks least of the builds to come.
        """
        commands = commands or self._judges
        ranked = self._results.ranked(commands, self._counted())
        most = self._results.ratio(ranked[0], commands) * self.no_matter(commands)
        simplest = [PLAIN, *self.kinds]
        near = (name for name in ranked if self._results.ratio(name, commands) <= most)
        return self.kinds.get(min(near, key=simplest.index))

    def no_matter(self, commands: Sequence[str]) -> float:
        """By what factor costs may differ and are the same."""
        return max(_NO_MATTER, 1 + BY_CHANCE * self._results.spread(commands))

    def loss_by(self, commands: Sequence[str]) -> tuple[ProfileKind | None, float]:
        """What other commands alone would choose, and what share more that costs the judges."""
        chosen, best = self.best(commands), self.best()
        loss = self._ratio_or_1(chosen) / self._ratio_or_1(best) - 1
        return chosen, loss if loss > self.no_matter(self._judges) - 1 else 0.0

    def _ratio_or_1(self, kind: ProfileKind | None) -> float:
        return 1.0 if kind is None else self.ratio(kind)

    def is_counted(self, kind: ProfileKind) -> bool:
        """Whether this search has met it: an earlier one had other options."""
        return kind.name in self.kinds and kind.name in self._results.costs

    def _counted(self) -> list[str]:
        """What may be chosen."""
        sampled = (kind for kind in self.kinds.values() if kind.is_sampled)
        return [PLAIN, *(kind.name for kind in sampled if self.is_counted(kind))]

    def yardstick(self, kind: ProfileKind) -> ProfileKind | None:
        """The instrumented build that a kind is compared with, laid out alike; None for none."""
        alike = replace(INSTRUMENTED, layout=kind.layout), INSTRUMENTED
        return next(filter(self.is_counted, alike), None)

    def ranked(self) -> list[ProfileKind]:
        """All that may be chosen and behave, what costs least first."""
        names = self._results.ranked(self._judges, self._counted())
        return [self.kinds[name] for name in names if name != PLAIN]

    def compiled(self) -> list[ProfileKind]:
        """Those as the compiler made them."""
        return [kind for kind in self.ranked() if not kind.layout]

    def ratio(self, kind: ProfileKind) -> float:
        """What it costs the commands that judge, with the plain build's cost as 1."""
        return self._results.ratio(kind.name, self._judges)

    def like(self, kind: ProfileKind, others: Iterable[ProfileKind]) -> ProfileKind | None:
        """The first of some others that has the same code."""
        own = self.digest(kind)
        return next((each for each in others if self.digest(each) == own), None)

    def each_code_once(self, kinds: Iterable[ProfileKind]) -> Iterator[ProfileKind]:
        """The first of those that have the same code."""
        found = list[ProfileKind]()
        for kind in kinds:
            if self.like(kind, found) is None:
                found.append(kind)
                yield kind
