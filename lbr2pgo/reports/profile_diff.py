"""Two written profiles, old and new, as a review has them: what changed, and what is chance."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lbr2pgo.analyses.profile_changes import profile_changes
from lbr2pgo.analyses.table import Table, percentage
from lbr2pgo.profiles.registry import read_alike
from lbr2pgo.provenance.told import is_exact
from lbr2pgo.reports.model import Report
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ProfileDiff:
    """What changed between two profiles."""

    old: Path
    new: Path
    kind: str
    """Of both."""
    is_same: bool
    """Whether every count of functions and calls is the same."""
    functions: Table
    """By how much their share of all counts changed, most first."""
    calls: Table
    """Gained and lost, heaviest first."""

    @property
    def verdict(self) -> str:
        """In a sentence."""
        if self.is_same:
            return "nothing changed"
        found = self.functions.found, self.calls.found
        if not any(found):
            return "nothing changed by more than chance"
        words = counted(found[0], "function"), counted(found[1], "call")
        return f"{words[0]} with another share, {words[1]} gained or lost"

    @property
    def report(self) -> Report:
        """To be shown, or exported."""
        tables = tuple(table for table in (self.functions, self.calls) if len(table))
        title = f"{self.kind}: {self.verdict}"
        profiles = (f"{self.old} (old)", f"{self.new} (new)")
        return Report(title, "", None, profiles, (), (), tables, summary=(*self._sentences(),))

    def _sentences(self) -> tuple[str, ...]:
        if not len(self.functions):
            return ()
        row = next(self.functions.records())
        old, new = (percentage(float(row[side] or 0)) for side in ("old", "new"))
        return (f"The most changed {row['function']}, from {old} to {new} of the profile.",)

    def __repr__(self) -> str:
        return f"<ProfileDiff {os.path.basename(self.new)}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return f"<p>{self.verdict}</p>{self.functions._repr_html_()}{self.calls._repr_html_()}"


def diff_profiles(
    old: Path, new: Path, top: int | None = None, *, everything: bool = False
) -> ProfileDiff:
    """Compare two written profiles of one kind; tables have at most `top` rows (None: all).

    With `everything` what may be chance is listed too, and marked; nothing is where the provenance
    of both says that counts are exact. Raises InputError for what is
    no written profile, tells of no shares, or is of another kind.
    """
    before, after = (each.weights for each in read_alike(old, new))
    assert before is not None  # they are alike in this
    assert after is not None
    if is_exact(old) and is_exact(new):
        before, after = (replace(each, per_sample=0) for each in (before, after))
    functions, calls = profile_changes(after, before, top, everything=everything)
    is_same = (before.functions, before.calls) == (after.functions, after.calls)
    return ProfileDiff(old, new, before.kind, is_same, functions, calls)
