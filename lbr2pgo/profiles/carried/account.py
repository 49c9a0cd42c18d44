"""What became of a profile's counts: how sure the carried ones are, and which were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from lbr2pgo.support.dataclass import dataclass

LEAST_KEPT = 0.2
"""Share of a function's counts below which it does better without."""


class Way(Enum):
    """How a count came into the new profile, from sure to lost."""

    SAME = "in functions that did not change"
    PLACE = "at places that did not change"
    CHANGED = "at places that changed or moved"
    UNKNOWN = "in functions that the old tree or build does not tell of, kept as they were"
    LOST = "lost"


@dataclass(slots=True)
class Account:
    """Sums of a profile's counts, by what became of them."""

    ways: dict[str, Counter[Way]] = field(default_factory=dict)
    """Of each function, wherever it was inlined."""
    renamed: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Functions that the new tree lacks."""
    split: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Functions that parts of one went to."""
    dropped: set[str] = field(default_factory=set)
    """Functions of which too little is left to be worth more than nothing."""

    def add(self, function: str, way: Way, count: int) -> None:
        """Note what became of a count in a function."""
        self.ways.setdefault(function, Counter())[way] += count

    def total(self) -> Counter[Way]:
        """Of all functions."""
        found: Counter[Way] = Counter()
        for ways in self.ways.values():
            found.update(ways)
        return found

    def ways_of_all(self) -> list[Way]:
        """The ways that counts took, from sure to lost."""
        total = self.total()
        return [way for way in Way if total[way]]

    def carried(self) -> float:
        """Share of the counts that were not lost, from 0 to 1."""
        total = self.total()
        return 1 - total[Way.LOST] / (total.total() or 1)

    def lost(self) -> Mapping[str, int]:
        """Counts lost, by function, most first."""
        found = {name: ways[Way.LOST] for name, ways in self.ways.items() if ways[Way.LOST]}
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def as_json(self) -> dict[str, object]:
        """As docs/schemas/carried.schema.json says."""
        return {
            "carried": self.carried(),
            "counts": _named(self.total()),
            "functions": {name: _named(ways) for name, ways in sorted(self.ways.items())},
            "renamed": dict(sorted(self.renamed.items())),
            "split": {name: list(parts) for name, parts in sorted(self.split.items())},
            "dropped": sorted(self.dropped),
            "gone": sorted(self.gone),
        }


def _named(ways: Mapping[Way, int]) -> dict[str, int]:
    return {way.name.lower(): ways.get(way, 0) for way in Way}
