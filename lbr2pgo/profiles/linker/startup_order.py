"""The order of functions for a program's first seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in
from lbr2pgo.profiles.linker.symbol_order import LIMITS, NAMED, RAN, named_flow
from lbr2pgo.profiles.propeller.format import ordered_by
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.profiles.linker.first_runs import Starts

EARLY = Step("functions_early", "functions that ran early", "functions", None)


@dataclass(frozen=True, slots=True)
class StartupOrderOutput(Output):
    """Functions in the order in which they first ran, for a linker."""

    path: Path = field(
        metadata=flag(
            "--startup-order", "functions as they first ran, for ld.lld --symbol-ordering-file"
        )
    )
    within: int = field(
        default=1000,
        metadata=flag("--startup-within", "milliseconds of a process that are its start-up (1000)"),
    )

    weights: tuple[int, ...] = field(
        default=(),
        metadata=flag(
            "--startup-weights",
            "how much each recording counts, such as 3,1, for which functions stand together",
        ),
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"cc -O2 {ordered_by(self.path)}"

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.profiles.linker.first_runs import ASKED

        return ASKED

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.linker import linker_lists
        from lbr2pgo.profiles.linker.first_runs import first_runs, named_in_order
        from lbr2pgo.profiles.linker.function_order import by_first_runs

        found, runs = work.once(named_flow), work.once(first_runs)
        rank, since = runs.earliest(len(found.names))
        within = self.within * 1_000_000
        is_early, starts = since <= within, runs.starts(within, self.weights)
        order = by_first_runs(found.flow, starts.together(rank), is_early)
        with work.writing("start-up order"):
            linker_lists.write(linker_lists.STARTUP, named_in_order(found, order), self.path)
        tallies = {**found.tallies, EARLY.key: int(is_early.sum())}
        return Written(tallies, tuple(_left_out(starts)))


def _left_out(starts: Starts) -> Iterator[str]:
    if starts.left_out:
        yield (
            f"Processes started in {len(starts.traces) + starts.left_out:,} ways: the "
            f"{len(starts.traces)} most frequent ones decide which functions stand together."
        )


FORMAT = OutputFormat(
    name="startup_order",
    suffix=".startup",
    output=StartupOrderOutput,
    forms=(
        Form(
            "startup_order", "functions as they first ran", "lld reads it",
            "ld.lld --symbol-ordering-file", needs="times of samples",
        ),
    ),
    references=("LLVM: lld/docs/ld.lld.1, --symbol-ordering-file",),
    limitations=LIMITS,
    steps=(RAN, NAMED, EARLY),
    readers=readers_in("linker.linker_lists", "STARTUPS"),
)  # fmt: skip
