"""A report that notebooks show as its page."""

from __future__ import annotations

from dataclasses import fields

from lbr2pgo.reports.html import framed, write
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.readable import readable
from lbr2pgo.reports.values import shortened
from lbr2pgo.support.counted import counted
from lbr2pgo.support.output import PathLike

_LONGEST = 80
"""Of the names of tables."""


class NotebookReport(Report):
    """A `Report` with a picture."""

    __slots__ = ()

    @classmethod
    def of(cls, report: Report) -> NotebookReport:
        """The same report."""
        return cls(**{each.name: getattr(report, each.name) for each in fields(report)})

    def __repr__(self) -> str:
        names = ", ".join(table.name for table in self.tables if len(table))
        tables = counted(len(self.tables), "table")
        return f"<Report {self.title}: {tables}: {shortened(names, _LONGEST)}>"

    def to_html(self, path: PathLike) -> None:
        """Write the page, whole or not at all; raises OutputError if it can't be."""
        write(readable(self), path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        return framed(readable(self))
