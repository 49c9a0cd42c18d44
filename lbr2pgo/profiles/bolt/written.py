"""Written fdata and YAML of BOLT's: recognised, read, shown as text, and added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO

import numpy as np

from lbr2pgo.profiles.base import Merging, Reader
from lbr2pgo.profiles.bolt.fdata import fdata_sums, fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata, FdataTable, TableT
from lbr2pgo.profiles.bolt.yaml import yaml_sums, yaml_text
from lbr2pgo.support.arrays import I64


def lines(content: Fdata) -> Iterator[str]:
    """As llvm-bolt reads them."""
    stream = BytesIO()
    fdata_text.write(content, stream)
    written = stream.getvalue().decode("utf-8", "surrogateescape")
    return iter(written.removesuffix("\n").split("\n") if written else ())


def of_function(content: Fdata, function: str) -> Iterator[str] | None:
    """Lines that begin or end in the function; None if it has no name here."""
    wanted = [i for i, name in enumerate(content.names) if function in (name, _plain(name))]
    return lines(_only(content, wanted)) if wanted else None


def _plain(name: str) -> str:
    """A local symbol's name without what BOLT puts behind it (`name/file.c/1`)."""
    return name.partition("/")[0]


def _only(content: Fdata, names: Sequence[int]) -> Fdata:
    def chosen(table: TableT | None) -> TableT | None:
        return None if table is None else table.take(_rows(table, names))

    return replace(
        content,
        branches=chosen(content.branches),
        samples=chosen(content.samples),
        loads=chosen(content.loads),
    )


def _rows(table: FdataTable, names: Sequence[int]) -> I64:
    """Rows that begin or end in one of these names."""
    found = np.zeros(len(table), dtype=np.bool_)
    for letter, column in zip(table.form, table.columns(), strict=True):
        if letter == "n":
            found |= np.isin(column, names)
    return np.flatnonzero(found)


def functions(content: Fdata) -> tuple[str, ...]:
    """All names."""
    return content.names


READERS = (
    Reader(
        fdata_text.is_fdata, fdata_text.read, lines, of_function, functions,
        Merging("fdata", fdata_sums.merged, fdata_text.write),
    ),
)  # fmt: skip

YAML_READERS = (
    Reader(
        yaml_text.is_yaml, yaml_text.read, yaml_text.lines, yaml_text.of_function,
        yaml_text.functions, Merging("BOLT YAML", yaml_sums.merged, yaml_text.write),
    ),
)  # fmt: skip
