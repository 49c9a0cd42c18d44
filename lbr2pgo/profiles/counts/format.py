"""Our own counts, exact and small: to be merged, kept, and converted again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.preaggregated.format import TRACES
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.extras import extra

if TYPE_CHECKING:
    from lbr2pgo.model.branch_counts import BranchCounts

CountsForm = Literal["auto", "npz", "parquet"]
_SUFFIX = ".parquet"
_FACTS = {"host": "host", "recorder": "perf", "time": "time"}
"""Under which names inputs tell where they are from."""


@dataclass(frozen=True, slots=True)
class CountsOutput(Output):
    """Everything that was counted, with its waterfall."""

    path: Path = field(
        metadata=flag("--counts", "counts that convert reads again (.npz or .parquet)")
    )
    form: CountsForm = field(
        default="auto",
        metadata=flag("--counts-format", "form of the counts (auto: parquet if so named)"),
    )

    def __post_init__(self) -> None:
        refuse_without_parquet(self.path, self.form)

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"lbr2pgo convert {shell_word(self.path)} --binary ELF"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        with work.writing("counts"):
            origin = origin_of(source.info.details for source in work.found.sources)
            write_counts([work.counts], self.path, origin, self.form)
        return Written({TRACES.key: len(work.counts)})


def is_parquet(path: Path, form: CountsForm = "auto") -> bool:
    """Whether counts at a path are to be Parquet, which holds several builds."""
    return form == "parquet" or (form == "auto" and path.suffix == _SUFFIX)


def refuse_without_parquet(path: Path, form: CountsForm = "auto") -> None:
    """Before any work, raise MissingToolError where counts at a path could not be written."""
    if is_parquet(path, form):
        extra("pyarrow.parquet", "parquet", "writing Parquet")


def write_counts(
    builds: Sequence[BranchCounts],
    path: Path,
    origin: Mapping[str, Sequence[str]],
    form: CountsForm = "auto",
) -> None:
    """Write counts of one build, or of several as Parquet; raises OutputError."""
    if is_parquet(path, form):
        from lbr2pgo.profiles.counts import parquet_counts

        parquet_counts.write(builds, path, origin)
        return
    from lbr2pgo.profiles.counts import saved_counts

    (counts,) = builds
    saved_counts.write(counts, path)


def origin_of(inputs: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Where inputs are from, by the details of each: each fact once, ordered."""
    found: dict[str, set[str]] = {name: set() for name in _FACTS}
    for details in inputs:
        for name, key in _FACTS.items():
            told = details.get(name) or details.get(key)
            found[name] |= set(told.split(", ")) if told else set()
    return {name: sorted(texts) for name, texts in found.items()}


FORMAT = OutputFormat(
    name="counts",
    suffix=".npz",
    output=CountsOutput,
    forms=(
        Form("saved_counts", "saved counts", "`.npz`, see below", "lbr2pgo"),
        Form(
            "parquet_counts",
            "saved counts, Parquet",
            "Parquet, see below",
            "lbr2pgo, DuckDB, Polars, Spark",
            {"form": "parquet"},
        ),
    ),
    references=(
        "lbr2pgo/sources/saved_counts.py",
        "lbr2pgo/sources/parquet_counts.py",
        "numpy.lib.format",
        "https://parquet.apache.org/docs/file-format/",
    ),
    steps=(TRACES,),
)
