"""What exports of code have in common."""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.analyses.code_profile import CodeFile, CodeFrame, CodeProfile
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports.model import Report
from lbr2pgo.support.addresses import SLOT_SIZE, slot_of
from lbr2pgo.support.dataclass import dataclass
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


@dataclass(frozen=True, slots=True)
class CodeSpan:
    """A file at the addresses that it is linked for, behind those of its slot."""

    file: CodeFile
    start: int
    limit: int
    """Behind the last instruction that ran."""


def code_spans(report: Report, code: CodeProfile) -> dict[int, CodeSpan]:
    """The program and its libraries, by the slot of their addresses."""
    files = {0: CodeFile(report.binary, report.build_id or ""), **code.libraries}
    limits = {slot: slot * SLOT_SIZE + 1 for slot in files}
    for address in code.address.tolist():  # which ascend
        limits[slot_of(address)] = address + 1
    return {slot: CodeSpan(file, slot * SLOT_SIZE, limits[slot]) for slot, file in files.items()}


def outside(code: CodeProfile) -> tuple[str, ...]:
    """Files that call stacks go through and nothing is known of, and the kernel."""
    return code.calls.outside if code.calls else ()


def call_stacks(code: CodeProfile) -> Iterator[tuple[list[int], int]]:
    """Each call stack, the innermost first, and how many samples had it.

    By locations from 1 on: those of instructions, and behind them those `outside`.
    """
    if code.calls is None:
        return
    behind = len(code) + len(code.calls.outside)
    for stack, count in zip(code.calls.stacks, code.calls.count.tolist(), strict=True):
        yield [1 + (row if row >= 0 else behind + row) for row in reversed(stack)], count
