"""One table as Parquet, for pandas, Polars, DuckDB and their like; pyarrow writes it."""

from __future__ import annotations

import io
from typing import Any

from lbr2pgo.analyses.table import Table
from lbr2pgo.reports.model import Report
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.extras import extra


def as_parquet(report: Report) -> bytes:
    """The only table; raises InputError where there are more.

    Raises MissingToolError without pyarrow.
    """
    out = io.BytesIO()
    writer().write_table(_only(report).to_arrow(), out)
    return out.getvalue()


def writer() -> Any:
    """What writes it; raises MissingToolError without pyarrow."""
    return extra("pyarrow.parquet", "parquet", "--format parquet")


def _only(report: Report) -> Table:
    if len(report.tables) != 1:
        raise InputError(
            "a Parquet file holds one table",
            cure="Name it with --only, or use --format json for all of them.",
        )
    return report.tables[0]
