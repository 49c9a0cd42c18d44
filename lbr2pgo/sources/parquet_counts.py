"""`BranchCounts` of any number of builds in one Parquet file, for those who query with SQL.

Rows are sorted by build-id, then by the next four columns:

| column | type | holds |
| --- | --- | --- |
| `build_id` | dictionary of text | hex; null for a program without one |
| `from`, `to`, `end` | uint64 | image addresses, see `lbr2pgo.model.branch_counts.BranchCounts` |
| `known` | uint8 | which parts of a row are facts: the bits of `lbr2pgo.model.branch_counts` |
| `count`, `mispredicted` | uint64 | how often |
| `prediction_unknown` | uint64 | how often nothing told; may be left out for none |
| `weight` | text or number | optional: what the row's numbers are multiplied by, such as 1/3 |

The schema's metadata has one key, `lbr2pgo`, with JSON: `version` (1), `weight` (of the file, a
text as 1 or 1/3), `tallies` (by build-id, that of none is empty), `host`, `recorder` and `time`
(lists, of what is known). A file without it, as other tools write, has neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts, aggregate
from lbr2pgo.model.count_sums import CountSums
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import Addresses, ShownShortly, Sniff, SourceFormat, SourceInfo
from lbr2pgo.support import budget
from lbr2pgo.support.addresses import image_addresses
from lbr2pgo.support.arrow import INTEGERS, integers_of, whole
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.extras import extra
from lbr2pgo.support.sums import TooManyError

if TYPE_CHECKING:
    from lbr2pgo.model.count_sums import Weight

VERSION = 1
METADATA = b"lbr2pgo"
NUMBERS = {
    "from": "uint64", "to": "uint64", "end": "uint64", "known": "uint8", "count": "uint64",
    "mispredicted": "uint64", "prediction_unknown": "uint64",
}  # fmt: skip
ORIGIN = ("host", "recorder", "time")
"""What the metadata says of where counts are from."""

_OPTIONAL = "prediction_unknown"
_NAME = "lbr2pgo counts in Parquet"
_MAGIC = b"PAR1"


class ParquetCounts(ShownShortly):
    """A file of counts. Implements `BuildSource`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        table = self._table()
        self._header = _Header(table.schema.metadata or {}, path)
        with _explained(path):
            self._builds = tuple(_builds(table, self._header))
        details = {name: ", ".join(self._header.origin[name]) for name in ORIGIN}
        names = ", ".join(sorted({each.build_id or "none" for each, _ in self._builds}))
        self.info = SourceInfo(
            str(path), _NAME, Addresses.IMAGE,
            details={k: v for k, v in {"build-id": names, **details}.items() if v},
        )  # fmt: skip
        """The file's name, the build-ids that it is about, and where the counts are from."""

    def _table(self) -> Any:
        arrow = extra("pyarrow", "parquet", f"reading {self._path}")
        parquet = extra("pyarrow.parquet", "parquet", f"reading {self._path}")
        try:
            file = parquet.ParquetFile(self._path, page_checksum_verification=True)
            if file.metadata.num_rows > budget.PARQUET_ROWS.of(self._path.stat().st_size):
                raise ValueError(f"{file.metadata.num_rows:,} rows can't be in it")
            missing = NUMBERS.keys() - {_OPTIONAL} - set(file.schema_arrow.names)
            if missing:
                raise ValueError(f"it has no column {min(missing)}")
            if len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
                raise ValueError("two of its columns have one name")
            wanted = [*NUMBERS, "build_id", "weight"]
            present = [name for name in wanted if name in file.schema_arrow.names]
            return file.read(columns=present)
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise _damage(self._path, str(error).partition("\n")[0]) from error

    def health(self) -> Mapping[str, int]:
        """Nothing: a damaged file is refused. Earlier losses are among the counts' tallies."""
        return {}

    def builds(self) -> Iterator[tuple[BranchCounts, Weight]]:
        """See `BuildSource`."""
        yield from self._builds

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts of the image with this layout; raises InputError if there are none."""
        sums = CountSums()
        for counts, weight in self._builds:
            sums.add(counts, weight)
        found = {each.build_id: each for each in sums.builds()}
        if layout.build_id in found:
            return found[layout.build_id]
        if len(found) == 1 and (layout.build_id is None or None in found):
            (only,) = found.values()
            return replace(only, build_id=layout.build_id or only.build_id)
        raise InputError(
            f"counts of other builds: of {self.info.details.get('build-id', 'none')}, "
            f"but {layout.path} is {layout.build_id}",
            where=self.info.path,
            cure="Give the binary that the counts were taken from.",
        )


class _Header:
    """What the metadata says."""

    def __init__(self, metadata: Mapping[bytes, bytes], path: Path) -> None:
        self.weight: Weight = 1
        self.tallies: dict[str, dict[str, int]] = {}
        self.origin: dict[str, tuple[str, ...]] = dict.fromkeys(ORIGIN, ())
        if METADATA not in metadata:
            return
        try:
            header = json.loads(metadata[METADATA])
            version = header["version"]
            self.weight = _weight(header["weight"])
            self.tallies = {name: _sound(tally) for name, tally in header["tallies"].items()}
            self.origin = {name: tuple(map(str, header.get(name, ()))) for name in ORIGIN}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damage(path, "its header can't be read") from error
        if version != VERSION:
            raise InputError(
                f"counts of version {version!s:.20}; known is {VERSION}",
                where=str(path),
                cure="Convert them with the lbr2pgo that wrote them, or a newer one.",
            )


def _weight(text: object) -> Weight:
    from lbr2pgo.support.file_weights import (
        weight_of,  # loads fractions, which most files don't need
    )

    return 1 if str(text) == "1" else weight_of(text)


def _sound(tally: Mapping[str, int]) -> dict[str, int]:
    is_counted = all(type(n) is int and 0 <= n < 1 << 64 for n in tally.values())
    if not is_counted or not waterfall.is_sound(tally):
        raise ValueError("tallies that do not add up")
    return dict(tally)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with its rows."""
    try:
        yield
    except TooManyError as error:
        raise TooManyError(str(path)) from error
    except ValueError as error:
        raise _damage(path, str(error)) from error


def _damage(path: Path, why: str) -> InputError:
    cure = "Write it again with --counts, or with these columns."
    return InputError(f"the counts can't be used: {why}", where=str(path), cure=cure)


def _builds(table: Any, header: _Header) -> Iterator[tuple[BranchCounts, Weight]]:
    """The rows of each build and weight."""
    numbers = [_numbers(table, name) for name in NUMBERS]
    build, build_ids = _coded(table, "build_id", None)
    if not all(isinstance(each, str | None) for each in build_ids):
        raise ValueError(f"build_id is {table.column('build_id').type}, not text")
    weight, weights = _coded(table, "weight", "1")
    factors = [_weight(each) * header.weight for each in weights]
    group = build * len(weights) + weight
    there = distinct(group).tolist()
    for number in there:
        rows = group == number if len(there) > 1 else slice(None)
        build_id = build_ids[number // len(weights)]
        tally = header.tallies.pop(build_id or "", {})
        from_, to, end, known, count, wrong, unknown = (column[rows] for column in numbers)
        counts = aggregate(
            image_addresses(from_), image_addresses(to), image_addresses(end), known, count, wrong,
            unknown, build_id=build_id, tallies=tally,
        )  # fmt: skip
        total = counts.branch_total()
        if tally.get("branches_in_image", total) != total:
            raise ValueError("its tallies are not those of its counts")
        yield counts, factors[number % len(weights)]


def _numbers(table: Any, name: str) -> Any:
    """A column of the wanted type; raises ValueError for what it can't be."""
    if name not in table.column_names:
        return np.zeros(len(table), NUMBERS[name])
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"{name} holds nulls")
    found = integers_of(whole(column)) if str(column.type) in INTEGERS else None
    if found is None or int(found.min(initial=0)) < 0:
        raise ValueError(f"{name} is {column.type}, not {NUMBERS[name]}")
    if int(found.max(initial=0)) > np.iinfo(NUMBERS[name]).max:
        raise ValueError(f"{name} is too large for {NUMBERS[name]}")
    return found.astype(NUMBERS[name], copy=False)


def _coded(table: Any, name: str, absent: str | None) -> tuple[Any, Sequence[Any]]:
    """A column as places in its distinct values (n,), and these."""
    if name not in table.column_names or not len(table):
        return np.zeros(len(table), np.int64), [absent]
    column = table.column(name)
    if column.type.num_fields:  # lists and the like
        raise ValueError(f"{name} is {column.type}")
    coded = whole(column).dictionary_encode()
    values = coded.dictionary.to_pylist()
    places = integers_of(coded.indices, null=len(values))
    return places.astype(np.int64), [*values, absent]


def _sniff(head: bytes) -> Sniff:
    if head.startswith(_MAGIC):
        return Sniff.YES
    return Sniff.MORE if _MAGIC.startswith(head) else Sniff.NO


FORMAT = SourceFormat(
    name=_NAME,
    summary="counts of one build or several, saved with --counts OUT.parquet",
    references=("this module", "https://parquet.apache.org/docs/file-format/"),
    sniff=_sniff,
    open=ParquetCounts,
)
