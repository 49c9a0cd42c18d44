"""How LLVM lays a binary sample profile out: magic numbers, sections and their flags.

Source: LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h and SampleProfWriter.h.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

EXTENSIBLE_MAGIC = int.from_bytes(b"SPROF42\x04", "big")
RAW_MAGIC = int.from_bytes(b"SPROF42\xff", "big")
VERSION = 103


class SectionType(IntEnum):
    """What a section holds."""

    SUMMARY = 1
    NAMES = 2
    SYMBOLS = 3
    FUNCTION_OFFSETS = 4
    METADATA = 5
    CONTEXTS = 6
    SAMPLES = 32


TABLE_ORDER = (
    SectionType.SUMMARY,
    SectionType.NAMES,
    SectionType.CONTEXTS,
    SectionType.FUNCTION_OFFSETS,
    SectionType.SAMPLES,
    SectionType.SYMBOLS,
    SectionType.METADATA,
)
"""Order in the table of sections, which readers follow."""

FILE_ORDER = (
    SectionType.SUMMARY,
    SectionType.NAMES,
    SectionType.CONTEXTS,
    SectionType.SAMPLES,
    SectionType.SYMBOLS,
    SectionType.FUNCTION_OFFSETS,
    SectionType.METADATA,
)
"""Order of the bytes: offsets are known only after the samples."""


class SectionFlag(IntFlag):
    """Flags of a section; the upper half means something else in each type of section."""

    COMPRESSED = 1 << 0
    FLAT = 1 << 1

    SUMMARY_PARTIAL = 1 << 32
    SUMMARY_CONTEXTS = 1 << 33
    SUMMARY_FS = 1 << 34
    SUMMARY_PREINLINED = 1 << 36
    SUMMARY_VTABLES = 1 << 37

    NAMES_MD5 = 1 << 32
    NAMES_FIXED_LENGTH = 1 << 33
    NAMES_UNIQUE_SUFFIX = 1 << 34

    OFFSETS_ORDERED = 1 << 32

    METADATA_CHECKSUMS = 1 << 32
    METADATA_ATTRIBUTES = 1 << 33


@dataclass(frozen=True, slots=True)
class ProfileSection:
    """A row of the table of sections."""

    type: int
    flags: int
    offset: int
    """From the start of the file."""
    size: int


SECTION = struct.Struct("<4Q")
SECTION_COUNT = struct.Struct("<Q")
