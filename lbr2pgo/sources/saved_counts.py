"""`BranchCounts` in a file, to be merged, shipped and converted later.

The file is a NumPy `.npz` (a zip of arrays, `numpy.load` reads it) of format 2:

| array | dtype | holds |
| --- | --- | --- |
| `lbr2pgo_counts` | u1 | UTF-8 JSON: `version` (2), `build_id` (hex or null), `tallies` |
| `from_`, `to`, `end` | <u8 | image addresses, see `lbr2pgo.model.branch_counts.BranchCounts` |
| `known` | u1 | which parts of a row are facts: the bits of `lbr2pgo.model.branch_counts` |
| `count`, `mispredicted`, `prediction_unknown` | <u8 | how often; format 1 lacks the last |

All arrays but the first have one row for each trace. The first array stands first in the zip, so
that the head of the file tells what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts, aggregate, with_unknown_predictions
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import Addresses, ShownShortly, SourceFormat, SourceInfo, sniff_arrays
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.npz import Arrays, read_arrays
from lbr2pgo.support.sums import TooManyError

VERSION = 2
HEADER = "lbr2pgo_counts"
COLUMNS = {
    "from_": "<u8", "to": "<u8", "end": "<u8", "known": "|u1", "count": "<u8",
    "mispredicted": "<u8", "prediction_unknown": "<u8",
}  # fmt: skip
_OLDEST, _NEW_COLUMNS = 1, ("prediction_unknown",)
"""The oldest version that is read, and what it lacks."""

_NAME = "lbr2pgo counts"
_CURE = "Write it again with --counts."


def read_counts(path: Path) -> BranchCounts:
    """Read saved counts.

    Raises InputError where the file is missing, damaged or of a version unknown here.
    """
    try:
        return _read(read_arrays(path), path)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", where=str(path)) from error
    except TooManyError as error:
        raise TooManyError(str(path)) from error
    except ValueError as error:
        raise _damage(path, str(error)) from error


def _damage(path: Path, why: str) -> InputError:
    return InputError(f"the saved counts are damaged: {why}", where=str(path), cure=_CURE)


def _read(arrays: Arrays, path: Path) -> BranchCounts:
    raw = _array(arrays, HEADER, "|u1").tobytes()
    version, build_id, tallies = _read_header(raw, path)
    names = [name for name in COLUMNS if version > _OLDEST or name not in _NEW_COLUMNS]
    columns = [_array(arrays, name, COLUMNS[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise _damage(path, "its columns differ in length")
    native = dict(
        zip(
            names, (column.astype(column.dtype.type, copy=False) for column in columns), strict=True
        )
    )
    counts = aggregate(**native, build_id=build_id, tallies=tallies)
    if version == _OLDEST:
        counts = with_unknown_predictions(counts)
    if tallies.get("branches_in_image", counts.branch_total()) != counts.branch_total():
        raise ValueError("its tallies are not those of its counts")
    return counts


def _read_header(raw: bytes, path: Path) -> tuple[int, str | None, Mapping[str, int]]:
    try:
        header = json.loads(raw)
        version, build_id, tallies = header["version"], header["build_id"], header["tallies"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damage(path, "its header can't be read") from error
    if type(version) is not int or not _OLDEST <= version <= VERSION:
        raise InputError(
            f"saved counts of version {version!s:.20}; known are {_OLDEST} to {VERSION}",
            where=str(path),
            cure="Convert them with the lbr2pgo that wrote them, or a newer one.",
        )
    is_named = build_id is None or isinstance(build_id, str)
    if not is_named or not isinstance(tallies, dict) or not all(map(_is_count, tallies.values())):
        raise _damage(path, "its header holds something else than it should")
    if not waterfall.is_sound(tallies):
        raise _damage(path, "its tallies do not add up")
    return version, build_id, tallies


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


def _array(arrays: Arrays, name: str, dtype: str) -> npt.NDArray[np.generic]:
    """A column of the wanted type; raises ValueError if there is none."""
    if name not in arrays:
        raise ValueError(f"{name} is missing")
    found = arrays[name]
    if found.dtype != np.dtype(dtype) or found.ndim != 1:
        raise ValueError(f"{name}: an array of {found.dtype!s:.20} with {found.ndim} dimensions")
    return found


class SavedCounts(ShownShortly):
    """A file of saved counts. Implements `BuildSource`."""

    def __init__(self, path: Path) -> None:
        self._counts = read_counts(path)
        build_id = self._counts.build_id
        details = {"build-id": build_id} if build_id else {}
        self.info = SourceInfo(str(path), _NAME, Addresses.IMAGE, details=details)
        """The file's name, and the build-id that it is about."""

    def health(self) -> Mapping[str, int]:
        """Nothing: a damaged file is refused. Earlier losses are among the counts' tallies."""
        return {}

    def builds(self) -> Iterator[tuple[BranchCounts, int]]:
        """See `BuildSource`: one, which weighs as much as any other file."""
        yield self._counts, 1

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts, if they are of the image with this layout; raises InputError if not."""
        saved = self._counts.build_id
        if saved and layout.build_id and saved != layout.build_id:
            raise InputError(
                f"counts of another build: of {saved}, but {layout.path} is {layout.build_id}",
                where=self.info.path,
                cure="Give the binary that the counts were taken from.",
            )
        return replace(self._counts, build_id=layout.build_id or saved)


FORMAT = SourceFormat(
    name=_NAME,
    summary="counts that lbr2pgo saved with --counts",
    references=("this module", "numpy.lib.format"),
    sniff=partial(sniff_arrays, first=HEADER),
    open=SavedCounts,
)
