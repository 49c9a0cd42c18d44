"""How an ELF file lies in memory: the little that counting needs to know of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lbr2pgo.support.addresses import FileOffset, ImageAddress
from lbr2pgo.support.dataclass import dataclass

MODULE = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """One PT_LOAD program header."""

    address: ImageAddress
    file_offset: FileOffset
    file_size: int
    memory_size: int
    executable: bool

    @property
    def end(self) -> ImageAddress:
        """First address behind it."""
        return ImageAddress(self.address + self.memory_size)


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Path, identity and load segments of one ELF file."""

    path: str
    build_id: str | None
    """Lower-case hex, None if the file has no GNU build-id note."""
    machine: str
    """Name of the architecture."""
    is_pie: bool
    """True if the file may be loaded anywhere (ET_DYN)."""
    segments: tuple[Segment, ...]
    """Ordered by address."""
    anchors: Mapping[str, ImageAddress] = field(default_factory=dict)
    """Of kernel code what recordings tell its place by: `_text` and `_stext` of a kernel, and as
    `MODULE` the first code of a module; of all else nothing."""
