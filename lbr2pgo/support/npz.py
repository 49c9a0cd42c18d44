"""Arrays in a `.npz`, NumPy's archive, read so that damage is refused before it costs anything.

NumPy's own reader evaluates headers as Python, gives other things than arrays where a member is
none, and takes the memory that a header asks for. What is read here is what NumPy writes: numbers
and texts of at most one dimension, in version 1.0 of the format (NumPy: lib/format.py).
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.support import budget, headway

Arrays = dict[str, npt.NDArray[Any]]

_BEGINNING = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|=][A-Za-z][0-9]{0,9})', 'fortran_order': (?:False|True), "
    rb"'shape': \(([0-9, ]{0,99})\), \} *\n"
)
_KINDS = "biuU"
_LAST_CHARACTER = 0x10FFFF
_BROKEN_ARCHIVE = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, KeyError,
)  # fmt: skip


def read_arrays(path: Path) -> Arrays:
    """The arrays of an archive by their names, read-only.

    Raises ValueError, with what is wrong, where it is damaged, and OSError where it can't be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_expansion(archive, path.stat().st_size)
            members = archive.infolist()
            sizes = [member.compress_size for member in members]
            arrays: Arrays = {}
            for number, member in enumerate(members):
                with headway.part_of(sizes, number):
                    arrays[member.filename.removesuffix(".npy")] = _read(archive, member)
                    headway.tell(1)
            return arrays
    except _BROKEN_ARCHIVE as error:
        raise ValueError(str(error)) from error


def _refuse_expansion(archive: zipfile.ZipFile, packed: int) -> None:
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > budget.ARRAY_BYTES.of(packed):
        raise ValueError(f"{packed} bytes would become {unpacked}")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    name = member.filename.removesuffix(".npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name}: packed in a way that NumPy does not use")
    try:
        return parse_array(archive.read(member))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def parse_array(raw: bytes) -> npt.NDArray[Any]:
    """The array that a member holds; raises ValueError if that is none that is read here."""
    if not raw.startswith(_BEGINNING):
        raise ValueError("not of the array format 1.0")
    begin = len(_BEGINNING) + 2
    end = begin + int.from_bytes(raw[len(_BEGINNING) : begin], "little")
    header = _HEADER.fullmatch(raw[begin:end])
    if header is None:
        raise ValueError("its header can't be read")
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError as error:
        raise ValueError(f"an array of {header[1].decode()}") from error
    shape = [int(part) for part in header[2].split(b",") if part.strip()]
    if dtype.kind not in _KINDS or not dtype.itemsize or len(shape) > 1:
        raise ValueError(f"an array of {dtype!s:.20} with {len(shape)} dimensions")
    if len(raw) - end != dtype.itemsize * (shape[0] if shape else 1):
        raise ValueError("cut off")
    return _checked(np.frombuffer(raw, dtype, offset=end)).reshape(shape)


def _checked(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same; raises ValueError for texts of numbers that are no characters."""
    if values.dtype.kind == "U":
        characters = np.frombuffer(values.tobytes(), f"{values.dtype.str[0]}u4")
        if characters.max(initial=0) > _LAST_CHARACTER:
            raise ValueError("text that holds no characters")
    return values
