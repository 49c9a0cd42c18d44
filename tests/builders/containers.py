"""What is packed in a file, taken out to be damaged there, and packed again.

Damage to the file itself hardly ever gets past the checksums of what is packed.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from typing import NamedTuple

from builders.perf_data import Packer


class Parts(NamedTuple):
    """The contents of a file, and how to make the file again with one of them replaced."""

    contents: list[bytes]
    replaced: Callable[[int, bytes], bytes]


def whole(data: bytes) -> Parts:
    """No container: the file itself."""
    return Parts([data], lambda _, content: content)


def members(data: bytes) -> Parts:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        contents = [archive.read(name) for name in names]

    def replaced(number: int, content: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for i, name in enumerate(names):
                archive.writestr(name, content if i == number else contents[i])
        return stream.getvalue()

    return Parts(contents, replaced)


_DATA_AT, _FLAGS_AT, _HEADER_SIZE = 40, 72, 104


def packed_records(data: bytes) -> Parts:
    """The records of a perf.data file, in compressed records."""
    at, size = struct.unpack_from("<QQ", data, _DATA_AT)
    end = at + size
    features = int.from_bytes(data[_FLAGS_AT:_HEADER_SIZE], "little").bit_count()
    table = struct.unpack_from(f"<{2 * features}Q", data, end)

    def replaced(_: int, content: bytes) -> bytes:
        packed = Packer().pack(content)
        moved = [x + (0 if i % 2 else len(packed) - size) for i, x in enumerate(table)]
        head = data[:_DATA_AT] + struct.pack("<QQ", at, len(packed)) + data[_DATA_AT + 16 : at]
        return (
            head + packed + struct.pack(f"<{2 * features}Q", *moved) + data[end + 16 * features :]
        )

    return Parts([data[at:end]], replaced)


_NOTE_NAME = b"BOLT\0\0\0\0"
_SIZE_BEFORE_NAME = 8


def translation(data: bytes) -> Parts:
    """What llvm-bolt says of the code that it moved, in a program of its making."""
    name = data.index(_NOTE_NAME)
    (size,) = struct.unpack_from("<I", data, name - _SIZE_BEFORE_NAME)
    at = name + len(_NOTE_NAME)

    def replaced(_: int, content: bytes) -> bytes:
        return data[:at] + content[:size].ljust(size, b"\0") + data[at + size :]

    return Parts([data[at : at + size]], replaced)


CONTAINERS = {"": whole, "zip": members, "zstd": packed_records, "bat": translation}
