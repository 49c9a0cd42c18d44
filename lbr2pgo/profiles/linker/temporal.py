"""Temporal profile traces: functions of each process as they first ran, for llvm-profdata."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.linker.symbol_order import LIMITS, NAMED, RAN, named_flow
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding

_HEAD = ":ir\n:temporal_prof_traces\n"
_RECORD = "0\n1\n1"
"""Of each function: no hash of its flow, one counter, and that it ran."""


@dataclass(frozen=True, slots=True)
class TemporalOutput(Output):
    """A trace for each process, for lld's balanced partitioning."""

    path: Path = field(
        metadata=flag("--temporal", "traces of first runs for llvm-profdata merge, and lld")
    )

    weights: tuple[int, ...] = field(
        default=(),
        metadata=flag("--temporal-weights", "how much each recording counts, such as 3,1"),
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        merged = shell_word(self.path.with_suffix(".profdata"))
        return (
            f"llvm-profdata merge {shell_word(self.path)} -o {merged}; ld.lld "
            f"--irpgo-profile={merged} --bp-startup-sort=function"
        )

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.profiles.linker.first_runs import ASKED

        return ASKED

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.linker.first_runs import first_runs, named_in_order
        from lbr2pgo.support.output import write_pieces

        found, runs = work.once(named_flow), work.once(first_runs)
        traces = [named_in_order(found, each) for each in runs.of_each_process()]
        weights = runs.weights(self.weights)
        with work.writing("temporal profile"):
            write_pieces(
                self.path, (os.fsencode(line) + b"\n" for line in lines_of(traces, weights))
            )
        return Written(found.tallies)


def lines_of(traces: Sequence[Sequence[str]], weights: Sequence[int]) -> Iterator[str]:
    """LLVM: llvm/lib/ProfileData/InstrProfReader.cpp, TextInstrProfReader."""
    pairs = [pair for pair in zip(traces, weights, strict=True) if pair[0]]
    kept = [trace for trace, _ in pairs]
    yield from (_HEAD.rstrip("\n"), "# Num Traces", str(len(kept)))
    yield from ("# Trace Stream Size:", str(len(kept)))
    for trace, weight in pairs:
        yield from ("# Weight", str(weight), ", ".join(trace))
    for name in sorted({name for trace in kept for name in trace}):
        yield from ("", name, _RECORD)


FORMAT = OutputFormat(
    name="temporal",
    suffix=".temporal",
    output=TemporalOutput,
    forms=(
        Form(
            "temporal", "temporal profile traces", "llvm-profdata reads it",
            "llvm-profdata merge", needs="times of samples",
        ),
    ),
    references=(
        "LLVM: llvm/lib/ProfileData/InstrProfReader.cpp",
        "LLVM: lld/ELF/BPSectionOrderer.cpp",
    ),
    limitations=LIMITS,
    steps=(RAN, NAMED),
    only_written=_HEAD.encode(),
)  # fmt: skip
