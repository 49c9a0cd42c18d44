"""BOLT's pre-aggregated profile: traces by address."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

TRACES = Step("traces_written", "rows of traces written", "traces", None)


@dataclass(frozen=True, slots=True)
class PreaggregatedOutput(Output):
    """Counted traces, for perf2bolt."""

    path: Path = field(metadata=flag("--preaggregated", "traces for perf2bolt -pa"))

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"perf2bolt ELF -pa -p {shell_word(self.path)} -o OUT"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.preaggregated import traces_text

        with work.writing("pre-aggregated"):
            traces_text.write(work.counts, self.path)
        return Written({TRACES.key: len(work.counts)})


FORMAT = OutputFormat(
    name="preaggregated",
    suffix=".preagg",
    output=PreaggregatedOutput,
    forms=(
        Form(
            "preaggregated",
            "BOLT pre-aggregated traces",
            "`T`, `R` and `B` lines",
            "perf2bolt -pa, lbr2pgo",
        ),
    ),
    references=("LLVM: bolt/include/bolt/Profile/DataAggregator.h, comment of parsePreAggregated",),
    limitations=("names no build",),
    steps=(TRACES,),
)
