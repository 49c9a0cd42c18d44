"""Forms of a report that other programs open, by the names of `--format`.

To add one: write its module, and name it here.
"""

from __future__ import annotations

from collections.abc import Callable

from lbr2pgo.reports import data
from lbr2pgo.reports.exports import firefox, otlp, parquet, pprof, speedscope
from lbr2pgo.reports.model import Report
from lbr2pgo.support.dataclass import dataclass


def _text(write: Callable[[Report], str]) -> Callable[[Report], bytes]:
    return lambda report: write(report).encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Export:
    """One form."""

    write: Callable[[Report], bytes]
    about: str
    only: tuple[str, ...] = ()
    """The analyses that it holds, if not those that are asked for."""
    has_code: bool = False
    """It is made from `Report.code`, and of no tables."""
    is_shown: bool = False
    """What opens it shows names of functions as they are written there."""
    is_binary: bool = False
    one_table: bool = False
    """It is for one table: of what `--only` names, and not of all that an analysis makes."""
    all_rows: bool = False
    """Cutting its tables off would make it wrong."""
    loaded: Callable[[], object] = lambda: None
    """Raises MissingToolError, before any work, where a package is missing."""


EXPORTS = {
    "json": Export(_text(data.as_json), "all of it, for scripts"),
    "csv": Export(_text(data.as_csv), "tables, for scripts", one_table=True),
    "parquet": Export(
        parquet.as_parquet,
        "one table, see --only (needs pyarrow)",
        is_binary=True,
        one_table=True,
        loaded=parquet.writer,
    ),
    "folded": Export(
        _text(data.as_folded), "call stacks for flame graphs", ("call-stacks",), all_rows=True
    ),
    "pprof": Export(pprof.as_pprof, "profile.proto, for pprof", has_code=True, is_binary=True),
    "otlp": Export(
        otlp.as_otlp,
        "OpenTelemetry profiles (needs opentelemetry-proto)",
        has_code=True,
        is_shown=True,
        is_binary=True,
        loaded=otlp.messages,
    ),
    "speedscope": Export(
        _text(speedscope.as_speedscope), "for speedscope.app", has_code=True, is_shown=True
    ),
    "firefox": Export(
        _text(firefox.as_firefox), "for profiler.firefox.com", has_code=True, is_shown=True
    ),
}
