"""LLVM's binary sample profiles: the extensible form, read and written; the raw form, read.

A file of the extensible form begins with a magic number (the bytes `SPROF42` and 4 as one ULEB128)
and the version 103, then a table of sections: summary, names, calling contexts, offsets of
functions, samples, symbols of the binary, metadata. Nearly everything is ULEB128 numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from lbr2pgo.profiles.llvm import extbinary_reader, extbinary_writer, uleb
from lbr2pgo.profiles.llvm.extbinary_layout import EXTENSIBLE_MAGIC, RAW_MAGIC
from lbr2pgo.profiles.llvm.extbinary_writer import Options
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.support.errors import readable
from lbr2pgo.support.output import PathLike, write_pieces

__all__ = ["Options", "is_binary_profile", "read", "write"]


def read(path: PathLike) -> SampleProfile:
    """Read a binary profile. InputError names the offset of what is wrong."""
    with readable(path):
        data = Path(path).read_bytes()
    return extbinary_reader.decode(data, str(path))


def write(
    profile: SampleProfile, destination: PathLike | BinaryIO, options: Options | None = None
) -> None:
    """Write the extensible form to a path or a binary stream, byte for byte as LLVM 22 does.

    Profiles whose names are hashes are written with hashes. Raises OutputError for a name that
    holds a NUL byte.
    """
    write_pieces(destination, [extbinary_writer.encode(profile, options or Options())])


def is_binary_profile(head: bytes) -> bool:
    """Whether a file that begins with these bytes is of the extensible or the raw form."""
    return head.startswith(tuple(uleb.encode([m])[0] for m in (EXTENSIBLE_MAGIC, RAW_MAGIC)))
