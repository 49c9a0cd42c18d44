"""What exports of code have in common."""

from __future__ import annotations

from lbr2pgo.analyses.code_profile import CodeFrame, CodeProfile
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports.model import Report
from lbr2pgo.support.errors import InputError

UNITS = {
    "samples": "samples, by call stack",
    "instructions": "instructions executed, in samples",
    "branches": "taken branches",
    "mispredictions": "mispredicted branches",
    "cycles": "cycles",
}
"""What each measure counts, for people."""


def code_of(report: Report) -> CodeProfile:
    """The code of a report; raises InputError if it has none, as those without addresses."""
    if report.code is None:
        raise InputError(
            "holds no addresses, so its code is not known",
            where=", ".join(report.profiles),
            cure="Record stacks of addresses: perf record -b, lbr2pgo record.",
        )
    return report.code


def name_shown(frame: CodeFrame) -> str:
    """A frame's function, as a viewer shows it."""
    return without_unique_suffix(frame.function) or "[unknown]"
