"""What recordings come to, laid over their program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from lbr2pgo.counting.borders import Borders
from lbr2pgo.counting.borders import merge as merge_borders
from lbr2pgo.counting.sample_reading import Onlooker, SampleReading
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow, ReplayOptions, Verdict
from lbr2pgo.replay.unlogged import unlogged
from lbr2pgo.sources.base import Source
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass

FEWEST = 1000
"""Samples from which a flow can be inferred: of SQLite's conditional branches, which are many, with
so few a third of the weight is wrong, and with 20,000 a twelfth (docs/accuracy.md)."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Recordings counted and laid over their program."""

    program: Program
    sources: tuple[Source, ...]
    judged_by: ReplayOptions
    flow: Flow
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    filters: tuple[str, ...]
    """Why some recordings show single branches and not what ran between them."""
    borders: Borders = field(default_factory=lambda: merge_borders(()))
    """Where branches that leave the program went, and where those that reach it came from."""
    is_inferred: bool = False
    """The counts are not recorded branches, but a flow that was inferred from something else."""
    samples: InstructionCounts | None = None
    """What it was inferred from, where that is samples without branches."""
    told: Mapping[Any, Any] = field(default_factory=dict)
    """What a `Look` found in the second reading."""
    contradiction: Doubt | None = None
    """Why recordings that don't tell which build they are of must be of another one."""

    @property
    def counts(self) -> BranchCounts:
        """What was counted, each branch where it is."""
        return self.flow.counts

    @property
    def seems_selected(self) -> Doubt | None:
        """Why some kinds of branches alone seem recorded, though nothing says so."""
        is_other = self.is_inferred or self.contradiction is not None
        return None if is_other else unlogged(self.flow)

    def refuse_doubtful(self) -> None:
        """Raise IncompleteError for what would mislead.

        That is too few samples, some branches alone, or those of another program, as it seems.
        """
        if self.contradiction is not None:
            doubt: str | None = self.contradiction
            cure = "Give the binary that was recorded; --force takes what fits this one."
        elif self.samples is not None:
            self.refuse_nothing()
            number = self.flow.tallies["instructions_sampled"]
            said = f"{counted(number, 'sample')} {'is' if number == 1 else 'are'}"
            doubt = None if number >= FEWEST else f"{said} too few to infer a flow from"
            cure = f"Record more than {FEWEST:,} (a longer run, a shorter period), or give --force."
        else:
            doubt = self.seems_selected
            cure = "Record all branches (perf record -b); print text with perf script --header."
            cure += " --infer infers the others, --force takes them as they are."
        if doubt is not None:
            notes = [note for note in self.notes if note != doubt]
            raise IncompleteError(doubt, self.flow.tallies, notes, cure)

    def refuse_nothing(self) -> None:
        """Raise EmptyProfileError where the recordings hold nothing of the program."""
        if not len(self.counts):
            what = "the inputs hold no counts of this binary"
            raise EmptyProfileError(self.counts.tallies, self.notes, what)

    def refuse_unfit(self) -> None:
        """Raise EmptyProfileError where none of what they hold can have been this program."""
        self.refuse_nothing()
        fits = np.isin(self.flow.judged.verdict, (Verdict.VALID, Verdict.CROSSES_CALL))
        if not len(self.flow.branches) and not fits.any():
            what = "nothing of the inputs fits the code of this binary"
            raise EmptyProfileError(self.flow.tallies, self.notes, what)


class Look(Protocol):
    """What is looked for in the samples when counts are known, in a second reading."""

    def at(self, reading: SampleReading) -> Onlooker:
        """What looks at the samples of a source."""

    def told(self, flow: Flow) -> Mapping[Any, Any]:
        """What was found, of the instructions of a flow."""


Asks = Callable[[Replayed], Look | None]
"""What to look for by what was counted; a bias may not be corrected there yet."""
