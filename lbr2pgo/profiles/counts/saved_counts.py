"""Writes `BranchCounts` to a file; `lbr2pgo.sources.saved_counts` says what stands in it."""

from __future__ import annotations

import io
import json
import zipfile
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.sources.saved_counts import COLUMNS, HEADER, VERSION
from lbr2pgo.support.output import PathLike, write_to

# The zip format's first moment: when the counts were saved is no part of them.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16
_LEVEL = 6


def write(counts: BranchCounts, destination: PathLike | BinaryIO) -> None:
    """Save counts; equal counts and tallies make equal bytes.

    Raises OutputError where the destination can't be written.
    """
    write_to(destination, lambda stream: _write(counts, stream))


def _write(counts: BranchCounts, stream: BinaryIO) -> None:
    header = {
        "version": VERSION,
        "build_id": counts.build_id,
        "tallies": dict(sorted(counts.tallies.items())),
    }
    raw = json.dumps(header, separators=(",", ":")).encode()
    # An archive that a signal cuts off before it is entered writes its end once more when it is
    # freed: in memory that harms nobody, where the file would be closed by then.
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, HEADER, np.frombuffer(raw, dtype=np.uint8))
        for name, dtype in COLUMNS.items():
            _put(archive, name, getattr(counts, name).astype(dtype))
    stream.write(packed.getbuffer())


def _put(archive: zipfile.ZipFile, name: str, array: npt.NDArray[np.generic]) -> None:
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=_NO_TIME)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, _MODE
    archive.compresslevel = _LEVEL
    with archive.open(entry, "w", force_zip64=True) as stream:
        np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
