"""What is raised when not everything that was asked for could be made, with its waterfall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbr2pgo.model import waterfall
from lbr2pgo.support.errors import OutputError


class IncompleteError(OutputError):
    """An output was not written; others may have been."""

    def __init__(
        self, what: str, tallies: Mapping[str, int], notes: Sequence[str], cure: str | None = None,
        where: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what, cure=cure, where=where)
        self.tallies = tallies
        """As those of a `Conversion`, as far as it came."""
        self.notes = tuple(notes)


class EmptyProfileError(IncompleteError):
    """Nothing is left to write; `tallies` say where it went."""

    def __init__(
        self,
        tallies: Mapping[str, int],
        notes: Sequence[str] = (),
        what: str | None = None,
        steps: Sequence[waterfall.Step] = waterfall.STEPS,
    ) -> None:
        row = _emptied(waterfall.rows(tallies, steps))
        if row is not None:
            step = row.step
            what = f"the profile would be empty: no {step.unit} left at the step “{step.title}”"
        cure = "See what the profile holds with `lbr2pgo dump`."
        if row is not None and row.losses:
            reason, _ = row.losses[0]
            cure = f"{reason.title}: {reason.cure}."
        super().__init__(what or "no count is left to write", tallies, notes, cure)


def _emptied(rows: Sequence[waterfall.Row]) -> waterfall.Row | None:
    """The last step that left nothing of what there was before it, else the first with nothing."""
    empty = [row for row in rows if not row.count]
    lost = [row for row in empty if row.before]
    return (*lost[-1:], *empty[:1], None)[0]
