"""What outputs are made from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.model.branch_counts import BranchCounts
    from lbr2pgo.model.compat import Compat
    from lbr2pgo.program.dwarf.debug_info import DebugInfo
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replay import Flow
    from lbr2pgo.replay.replayed import Replayed
    from lbr2pgo.support.timings import Timings

T = TypeVar("T")


class Work:
    """What outputs are made from, each part found when the first of them asks for it."""

    def __init__(self, found: Replayed, timings: Timings) -> None:
        self.found = found
        self.timings = timings
        self._known: dict[Callable[[Work], Any], Any] = {}

    @property
    def program(self) -> Program:
        """The program that was recorded."""
        return self.found.program

    @property
    def flow(self) -> Flow:
        """What ran."""
        return self.found.flow

    @property
    def counts(self) -> BranchCounts:
        """What was counted."""
        return self.found.counts

    @property
    def is_exact(self) -> bool:
        """Whether every branch was counted, and none sampled."""
        return all(source.info.is_exact for source in self.found.sources)

    @property
    def compat(self) -> Compat:
        """Whose numbers to give even where we know better."""
        return self.found.judged_by.compat

    @property
    def debug(self) -> DebugInfo:
        """The program's debug information, which may be absent."""
        return self.once(_debug_info)

    def told(self, finding: Finding[T]) -> T | None:
        """What the samples tell that were asked for it; None where the inputs hold none."""
        told: T | None = self.found.told[finding] if self.found.told else None
        return told

    def writing(self, what: str) -> AbstractContextManager[None]:
        """The stage of writing something; raises InputError if the program has changed."""
        self.program.image.file.check_unchanged()
        return self.timings.stage(f"write {what}")

    def once(self, find: Callable[[Work], T]) -> T:
        """What a function finds here: it is called for the first output that asks."""
        if find not in self._known:
            self._known[find] = find(self)
        known: T = self._known[find]
        return known


def _debug_info(work: Work) -> DebugInfo:
    from lbr2pgo.program.dwarf.debug_info import DebugInfo

    return DebugInfo(work.program.debug_files)
