"""Which branches no processor can predict, for compilers that read LLVM's unpredictability hints.

A hints file is a sample profile that counts mispredictions instead of executions. The compiler
compares it with the profile of executions of the same run, and marks the branches of which a part
was mispredicted as `__builtin_unpredictable` does.
"""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.llvm.format import refuse_without_runs
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import OutputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.llvm.mispredicted import Hints

_HEAD = "# branches that are mispredicted: line, function, executions, mispredictions, rate"
_MISSED = Step("mispredictions", "mispredictions of conditional branches", "mispredictions", None)
_HINTED = Step(
    "mispredictions_hinted", "of lines that are mispredicted often", "mispredictions", _MISSED.key,
    {
        "no_line": Reason("without a source line", "build with -g (or -g1)"),
        "seldom": Reason("of lines that are mispredicted less often", "lower --unpredictable-rate"),
        "few": Reason("of lines with less than a thousandth of them", "nothing: they cost little"),
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnpredictableOutput(Output):
    """Lines whose branches are mispredicted often, and a profile of their mispredictions."""

    path: Path = field(
        metadata=flag("--unpredictable", "branches that are mispredicted, as hints for icx")
    )
    rate: int = field(
        default=20,
        metadata=flag(
            "--unpredictable-rate",
            "mispredictions in 100 executions from which on a line is named (20, as by LLVM)",
        ),
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"icx -O2 -g -mllvm -unpredictable-hints-file={shell_word(self.path)}"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.llvm.mispredicted import hints

        _refuse_what_says_nothing(work)
        with work.timings.stage("look up mispredictions"):
            found = hints(work.flow, work.program, work.debug, self.rate)
        tallies = {
            _MISSED.key: found.total,
            _HINTED.key: found.total - sum(found.lost.values()),
            **{f"{_HINTED.key}/{why}": count for why, count in found.lost.items()},
        }
        if not found.rows:
            raise EmptyProfileError(tallies, what="no conditional branch was mispredicted")
        with work.writing("mispredictions"):
            _write(found, self.path)
        return Written(tallies)


def _refuse_what_says_nothing(work: Work) -> None:
    """Raise OutputError where predictions, what ran, or source lines are not known."""
    if not work.flow.branches.says_predictions:
        told = dict.fromkeys(source.info.no_predictions for source in work.found.sources)
        raise OutputError(
            " ".join(filter(None, told))
            or "the recording does not say which branches were mispredicted",
            cure="Record on a processor and with a filter that keep flags (not -j no_flags).",
        )
    refuse_without_runs(work, "icx")
    if not work.debug.present:
        raise OutputError(f"no hints were written: {work.debug.missing_reason}")


def _write(found: Hints, path: Path) -> None:
    """A sample profile, behind comments that LLVM passes over."""
    from lbr2pgo.profiles.llvm import text_table
    from lbr2pgo.support.output import write_atomically

    comments = (_HEAD, *(f"# {row}" for row in found.rows))

    def write_all(stream: BinaryIO) -> None:
        stream.writelines(os.fsencode(line) + b"\n" for line in comments)
        text_table.write(found.table, stream)

    write_atomically(path, write_all)


FORMAT = OutputFormat(
    name="unpredictable",
    suffix=".unpredictable",
    output=UnpredictableOutput,
    forms=(
        Form(
            "unpredictable", "unpredictable branches", "LLVM writes a sample profile",
            "icx, llvm-profdata", needs="branches that are mispredicted often",
        ),
    ),
    references=(
        "LLVM: pull request 99027, UnpredictableProfileLoader.cpp",
        "Intel: DPC++/C++ Compiler Developer Guide, Hardware Profile-Guided Optimization",
    ),
    limitations=("needs mispredictions and debug information",),
    steps=(_MISSED, _HINTED),
    only_written=_HEAD.encode(),
)  # fmt: skip
