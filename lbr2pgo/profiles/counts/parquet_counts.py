"""Writes counts as Parquet; `lbr2pgo.sources.parquet_counts` says what stands in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.sources.parquet_counts import METADATA, NUMBERS, ORIGIN, VERSION
from lbr2pgo.support.arrow import of_integers, of_texts
from lbr2pgo.support.extras import extra
from lbr2pgo.support.output import PathLike, write_to

_ROW_GROUP = 1 << 20
_SORTED = ("from", "to", "end")
"""Neighbours differ little in these."""


def write(
    builds: Sequence[BranchCounts],
    destination: PathLike | BinaryIO,
    origin: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Save counts of several builds, ordered by build-id, none last.

    `origin` are texts for `ORIGIN`. Equal counts, tallies and origins make equal bytes. Raises
    OutputError where the destination can't be written, and MissingToolError without pyarrow.
    """
    parquet = extra("pyarrow.parquet", "parquet", "writing Parquet")
    table = _table(builds, origin or {})
    write_to(
        destination,
        lambda stream: parquet.write_table(
            table, stream, compression="zstd", row_group_size=_ROW_GROUP,
            write_page_checksum=True, use_dictionary=["build_id", "known"],
            column_encoding=dict.fromkeys(_SORTED, "DELTA_BINARY_PACKED"),
        ),
    )  # fmt: skip


def _table(builds: Sequence[BranchCounts], origin: Mapping[str, Sequence[str]]) -> Any:
    arrow = extra("pyarrow", "parquet", "writing Parquet")
    numbers = [of_integers(arrow, _column(builds, name)) for name in NUMBERS]
    lengths = [len(counts) for counts in builds]
    named = [counts.build_id for counts in builds]
    places = np.repeat(np.arange(len(builds), dtype=np.int32), lengths)
    is_nameless = np.repeat(np.array([name is None for name in named], np.bool_), lengths)
    build_ids = arrow.DictionaryArray.from_arrays(
        of_integers(arrow, places, is_nameless),
        of_texts(arrow, [name for name in named if name]),
    )
    header = {
        "version": VERSION,
        "weight": "1",
        "tallies": {each.build_id or "": dict(sorted(each.tallies.items())) for each in builds},
        **{name: sorted(set(origin.get(name, ()))) for name in ORIGIN},
    }
    metadata = {METADATA: json.dumps(header, separators=(",", ":"))}
    columns = [build_ids, *numbers]
    fields = [(name, each.type) for name, each in zip(("build_id", *NUMBERS), columns, strict=True)]
    return arrow.Table.from_arrays(columns, schema=arrow.schema(fields, metadata))


def _column(builds: Sequence[BranchCounts], name: str) -> Any:
    field = "from_" if name == "from" else name
    parts = [getattr(counts, field) for counts in builds]
    return np.concatenate(parts) if parts else np.zeros(0, NUMBERS[name])
