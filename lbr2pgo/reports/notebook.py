"""A report that notebooks show as its page."""

from __future__ import annotations

from dataclasses import fields

from lbr2pgo.reports.html import framed
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.readable import readable


class NotebookReport(Report):
    """A `Report` with a picture."""

    __slots__ = ()

    @classmethod
    def of(cls, report: Report) -> NotebookReport:
        """The same report."""
        return cls(**{each.name: getattr(report, each.name) for each in fields(report)})

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        return framed(readable(self))
