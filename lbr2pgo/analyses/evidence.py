"""`Evidence`: everything that the analyses look at, gathered once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from lbr2pgo.analyses.places import PlaceNames
from lbr2pgo.counting.borders import Borders, told_apart
from lbr2pgo.counting.borders import merge as merge_borders
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.duplicates import DUPLICATES
from lbr2pgo.evidence.effective_samples import SPREAD, Spread
from lbr2pgo.model.branch_counts import FROM, TO, Branches
from lbr2pgo.model.count_sums import merge
from lbr2pgo.program.dwarf.debug_info import CodeInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.astray import without_astray
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.intervals import numbers_in

T = TypeVar("T")

TOP = 20
"""How many rows a table has where nobody asks for more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a recording leaves out, by what its files say of themselves and by their entries."""

    is_filtered: bool = False
    """Some branches were kept by type: neighbours in a stack are not neighbours in time."""
    is_single: bool = False
    """Branches were sampled one by one: the entries are no stacks."""
    is_call_stack: bool = False
    """The stacks are call stacks: neither branches nor fall-throughs."""
    is_dense: bool = False
    """Between samples there are so few taken branches that stacks hold nearly all."""
    is_simulated: bool = False
    """Recorded under emulation: predictions and cycles are simulated."""
    no_cycles: tuple[str, ...] = ()
    """Why the entries of some files have none: a sentence for each reason."""
    no_predictions: tuple[str, ...] = ()
    """Why some don't say how they were predicted, likewise."""
    has_samples: bool = True
    """False for inputs that were counts already."""
    has_counts: bool = False
    """Some inputs were counts already."""


@dataclass(frozen=True)
class Evidence:
    """A replayed recording with its program: what every analysis takes."""

    program: Program
    debug: CodeInfo
    flow: Flow
    """Its branches across the border have the number of a file in `borders`."""
    limits: Limits = field(default_factory=Limits)
    findings: Mapping[Finding[Any], object] = field(default_factory=dict)
    """What the samples told beside counts, as far as analyses need it."""
    borders: Borders = field(default_factory=lambda: merge_borders(()))
    function: int | None = None
    """Only what concerns this region of the program (with its fragments); None for all."""
    _answers: dict[Callable[[Evidence], Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def whole(self) -> Evidence:
        """The same about all functions."""
        return self if self.function is None else replace(self, function=None)

    def of_function(self, region: int) -> Evidence:
        """The same about one function; what is known of the whole is not worked out again."""
        found = replace(self, function=region)
        vars(found)["whole"] = self.whole
        return found

    def once(self, answer: Callable[[Evidence], T]) -> T:
        """What a function says of this evidence, which it is asked once."""
        if answer not in self._answers:
            self._answers[answer] = answer(self)
        return cast(T, self._answers[answer])

    def found(self, finding: Finding[T]) -> T | None:
        """What the samples told; None for inputs without any.

        Raises KeyError if nobody looked: who asks must name it in `analyses.registry`.
        """
        if not self.limits.has_samples:
            return None
        told: Any = self.findings[finding]
        return cast(T, told)

    @property
    def spread(self) -> Spread | None:
        """How much observations tell; None if they are taken as independent.

        Counts beside samples say nothing of how they are spread.
        """
        return None if self.limits.has_counts else self.found(SPREAD)

    @cached_property
    def names(self) -> PlaceNames:
        """Names of addresses."""
        return PlaceNames(self.program, self.debug, self.borders.files)

    @cached_property
    def indirect_targets(self) -> dict[int, list[int]]:
        """Recorded targets of every indirect branch, by its address."""
        return self.flow.indirect_targets()

    def concerns(self, addresses: PlacedAddresses) -> Bools:
        """(n,): which addresses lie in the function that was asked for; all if none was."""
        if self.function is None:
            return np.ones(len(addresses), dtype=np.bool_)
        regions = self.program.regions
        family = regions.families(np.array([self.function]))
        inside = np.zeros(len(addresses), np.bool_)
        for start, end in zip(regions.start[family], regions.end[family], strict=True):
            inside |= (addresses >= start) & (addresses < end)
        return inside

    def rows_of(self, ascending: PlacedAddresses) -> I64:
        """As `concerns`: the rows (k,) of such addresses among (n,) ascending ones, in order."""
        if self.function is None:
            return np.arange(len(ascending))
        regions = self.program.regions
        family = regions.families(np.array([self.function]))
        bounds = (ascending.searchsorted(each[family]) for each in (regions.start, regions.end))
        return numbers_in(*bounds)

    @cached_property
    def recorded(self) -> Branches:
        """All branches as `perf report` counts them: with those recorded twice."""
        duplicates = self.found(DUPLICATES)
        if duplicates is None:
            return self.flow.branches
        made, _ = without_astray(duplicates, self.flow.instructions)
        return told_apart(merge([self.flow.counts, made]).branches(), self.borders)[0]

    def about(self, branches: Branches) -> Bools:
        """(b,): which branches leave or reach the function that was asked for."""
        leaves = self.concerns(branches.from_) & (branches.known & FROM != 0)
        reaches = self.concerns(branches.to) & (branches.known & TO != 0)
        both: Bools = leaves | reaches
        return both

    def duplicate_notes(self) -> tuple[str, ...]:
        """How many of `recorded` were recorded twice, if any were."""
        duplicates = self.found(DUPLICATES)
        if duplicates is None:
            return ()
        return (
            f"{int(duplicates.count.sum()):,} of these entries are copies of their sample's "
            "newest one, a known fault of the recorder: counted here, as perf report does, and "
            "nowhere else.",
        )

    @property
    def says_predictions(self) -> bool:
        """Whether the input tells mispredicted branches from others at all."""
        return self.recorded.says_predictions

    def sample_notes(self) -> tuple[str, ...]:
        """How the intervals were found."""
        if self.spread is not None:
            return (
                "Intervals hold the true share in 95 of 100 cases; entries of one sample are "
                "alike, so they count for less than independent ones.",
            )
        return (
            "Intervals hold the true share in 95 of 100 cases if observations are independent: "
            "this input does not show how alike those of one sample are.",
        )

    def line_notes(self) -> tuple[str, ...]:
        """Why there are no source lines, if there are none."""
        reason = self.debug.missing_reason
        return (f"No source lines: {reason}.",) if reason else ()

    def branch_notes(self) -> tuple[str, ...]:
        """Why branches are missing, if they are."""
        if self.limits.is_call_stack:
            return (
                "A call-stack recording holds calls that have not returned yet, and no branches: "
                "record with perf record -b, without --call-graph lbr.",
            )
        if self.limits.is_single:
            return ("The recording samples branches one by one: its entries are no stacks.",)
        if self.limits.is_filtered:
            return (
                "The recording was filtered by branch type: other branches are missing, and "
                "shares are shares of what was kept.",
            )
        return ()

    def run_notes(self) -> tuple[str, ...]:
        """Why nothing is known of fall-throughs between branches, if so."""
        if self.limits.is_single:
            return ("What ran between branches is not known: no block counts, no cycles.",)
        if self.limits.is_call_stack or self.limits.is_filtered:
            return (
                "The recording was filtered, so what ran between two entries is not known: "
                "no block counts, no branches not taken, no cycles of blocks.",
            )
        if not len(self.flow.judged.runs):
            return ("The input holds branches only, and not what ran between them.",)
        return ()
