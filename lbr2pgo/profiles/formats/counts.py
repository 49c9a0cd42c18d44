"""Our own counts, exact and small: to be merged, kept, and converted again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lbr2pgo.profiles.formats.base import Form, Output, OutputFormat, Work, Written, flag
from lbr2pgo.profiles.formats.preaggregated import TRACES


@dataclass(frozen=True, slots=True)
class CountsOutput(Output):
    """Everything that was counted, with its waterfall."""

    path: Path = field(metadata=flag("--counts", "counts that convert reads again (.npz)"))

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"lbr2pgo convert {self.path} --binary ELF"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles import saved_counts

        with work.writing("counts"):
            saved_counts.write(work.counts, self.path)
        return Written({TRACES.key: len(work.counts)})


FORMAT = OutputFormat(
    name="counts",
    output=CountsOutput,
    forms=(Form("saved_counts", "saved counts", "`.npz`, see below", "lbr2pgo"),),
    references=("lbr2pgo/sources/saved_counts.py", "numpy.lib.format"),
    steps=(TRACES,),
)
