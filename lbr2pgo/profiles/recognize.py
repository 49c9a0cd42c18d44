"""Written profiles of any format, recognised by content."""

from __future__ import annotations

from pathlib import Path

from lbr2pgo.profiles.bolt import fdata
from lbr2pgo.profiles.bolt.fdata_tables import Fdata
from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.support.errors import InputError

_HEAD_SIZE = 1 << 16


def read_written(path: Path) -> SampleProfile | Fdata | None:
    """A sample profile (text, extensible binary) or fdata; None if the file is neither.

    Raises InputError if it can't be read, is empty, or is broken.
    """
    head = _head(path)
    if llvm_extbinary.is_binary_profile(head):
        return llvm_extbinary.read(path)
    if fdata.is_fdata(head):
        return fdata.read(path)
    if llvm_text.is_text_profile(head):
        return llvm_text.read(path)
    if not head:
        raise InputError("is empty", where=str(path), cure="Write the profile again.")
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_SIZE)
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror or error}",
            where=str(path),
            cure="Check the path and its permissions.",
        ) from error
