"""Inline frames, lines, discriminators and functions of code addresses, from DWARF.

The answers are those of LLVM's symbolizer, because llvm-profgen builds its profiles from them, but
only units that cover the addresses asked for are decoded, in compiled loops. Reading starts with
the first question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from lbr2pgo.program.dwarf.frame import InlineFrames
from lbr2pgo.program.dwarf.function import DwarfFunctions
from lbr2pgo.program.dwarf.line import Lines, Origin
from lbr2pgo.program.dwarf.loader import SectionReader, has_dwarf, supplementary_file
from lbr2pgo.program.dwarf.lookup import Symbolizer
from lbr2pgo.program.dwarf.scope import ScopedPlaces, Scopes
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.program.dwarf.variables import StaticVariables
from lbr2pgo.program.elf.debug_files import DEBUG_DIRECTORIES, DebugFiles
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass

__all__ = [
    "CodeInfo",
    "DebugInfo",
    "DwarfFunctions",
    "InlineFrames",
    "Lines",
    "Origin",
    "ScopedPlaces",
    "Scopes",
]


class CodeInfo(Protocol):
    """What is known of the source of code, see `DebugInfo`; of one image, or of several."""

    @property
    def present(self) -> bool:
        """Whether there is debug information."""

    @property
    def missing_reason(self) -> str:
        """Why there is none and what to do; empty if there is."""

    def health(self) -> Mapping[str, int]:
        """What could not be used so far: a reason in words, and how often."""

    def expect(self, addresses: PlacedAddresses) -> None:
        """Say around which ascending placed addresses questions will be, which saves memory."""

    def frames(self, addresses: PlacedAddresses) -> InlineFrames:
        """Inline frames of (n,) placed addresses, in the order given."""

    def lines(self, addresses: PlacedAddresses) -> Lines:
        """File, line, discriminator and column of (n,) placed addresses."""

    def origins(self, addresses: PlacedAddresses) -> dict[str, Origin]:
        """What is said of the source files of placed addresses besides their names."""


@dataclass
class DebugInfo:
    """The debug information of an image: its own, or from a file that was split off it."""

    files: DebugFiles
    _problems: Counter[str] = field(default_factory=Counter)
    _past: Counter[str] = field(default_factory=Counter)
    _expected: ImageAddresses | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<DebugInfo of {self.files.image.path}>"

    @classmethod
    def open(cls, image: Image, directories: tuple[Path, ...] = DEBUG_DIRECTORIES) -> DebugInfo:
        """Nothing is decoded yet.

        `directories` are where `.build-id/` and the mirror of the file system with debug files are.
        """
        return cls(DebugFiles(image, directories))

    @property
    def image(self) -> Image:
        """The program."""
        return self.files.image

    @cached_property
    def source(self) -> Image | None:
        """The file that holds the DWARF; None if none was found."""
        return self.files.holder(has_dwarf)

    @property
    def present(self) -> bool:
        """Whether there is debug information."""
        return self.source is not None

    @property
    def missing_reason(self) -> str:
        """Why there is none and what to do; empty if there is."""
        if self.present:
            return ""
        refused = "; ".join(f"{problem}: {count:,}" for problem, count in self.health().items())
        searched = ", ".join(map(str, self.files.directories))
        return (
            f"{self.image.path} has no debug information, and none was found beside it or in "
            f"{searched}{refused and f' ({refused})'}: build it with "
            "-g1 or -g, or put the file that was stripped off it there"
            + (" (llvm-bolt keeps it with -update-debug-sections)" if self._was_bolted else "")
        )

    @property
    def _was_bolted(self) -> bool:
        return self.image.section(".note.bolt_info") is not None

    def health(self) -> Mapping[str, int]:
        """What could not be used so far: a reason in words, and how often."""
        problems = self._past | self._problems  # the more: what is read again is not counted again
        return {**self.files.health(), **problems}

    @property
    def units_decoded(self) -> int:
        """How many compilation units were decoded so far."""
        return self._symbolizer.units_decoded if "_symbolizer" in vars(self) else 0

    @cached_property
    def _symbolizer(self) -> Symbolizer:
        def read(image: Image, supplement: Dwarf | None = None) -> Dwarf:
            return Dwarf(image.path, SectionReader(image, self._problems), supplement=supplement)

        assert self.source is not None
        shared = supplementary_file(self.source, self.files.directories, self._problems)
        supplement = None if shared is None else read(shared)
        return Symbolizer(read(self.source, supplement), self._problems, self._expected)

    def release(self) -> None:
        """Give back the memory of what was read, which is much; it is read again where need be."""
        vars(self).pop("_symbolizer", None)
        self._past, self._problems = self._past | self._problems, Counter()

    def expect(self, addresses: PlacedAddresses) -> None:
        """Keep lines around these ascending placed addresses alone, until others are asked for."""
        self._expected = image_addresses(np.ascontiguousarray(addresses))

    def frames(self, addresses: PlacedAddresses) -> InlineFrames:
        """Inline frames of (n,) placed addresses, in the order given."""
        if not self.present:
            return InlineFrames.none(len(addresses))
        return self._symbolizer.frames(np.ascontiguousarray(addresses, np.uint64))

    def places(self, addresses: PlacedAddresses) -> tuple[ScopedPlaces, I64]:
        """Places in the source with the functions around them, and that of each of (n,) addresses.

        Neighbouring instructions are often of one inlined call and one line: asking for those
        once takes a fraction of the time. Of files nothing is said, and what is inlined deeper than
        can be kept is as code without a function.
        """
        if not self.present:
            return ScopedPlaces.none(len(addresses)), np.arange(len(addresses))
        return self._symbolizer.places(np.ascontiguousarray(addresses, np.uint64))

    def lines(self, addresses: PlacedAddresses) -> Lines:
        """File, line, discriminator and column of (n,) placed addresses."""
        if not self.present:
            zeros = np.zeros(len(addresses), np.uint32)
            return Lines(np.full(len(addresses), -1, np.int32), zeros, zeros, zeros, ())
        return self._symbolizer.lines(np.ascontiguousarray(addresses, np.uint64))

    def unit_names(self, addresses: PlacedAddresses) -> list[str | None]:
        """The source file that each of (n,) placed addresses was compiled from.

        As it was named to the compiler; None where that is not known.
        """
        if not self.present:
            return [None] * len(addresses)
        return self._symbolizer.unit_names(np.ascontiguousarray(addresses, np.uint64))

    def units(self, addresses: PlacedAddresses) -> I64:
        """The number of the compile unit of each of (n,) placed addresses, -1 where there is none.

        It tells units apart, of which several may have one name.
        """
        if not self.present:
            return np.full(len(addresses), -1)
        return self._symbolizer.units(np.ascontiguousarray(addresses, np.uint64))

    def origins(self, addresses: PlacedAddresses) -> dict[str, Origin]:
        """What is said of the source files of placed addresses besides their names."""
        if not self.present:
            return {}
        return self._symbolizer.origins(np.ascontiguousarray(addresses, np.uint64))

    def functions_for(self, addresses: PlacedAddresses) -> DwarfFunctions:
        """The functions of the units that claim these placed addresses.

        All units that do: of folded functions the first in the file counts, whichever unit the
        frames are taken from.
        """
        if not self.present:
            return DwarfFunctions.none()
        units = self._symbolizer.claims.units_with(np.asarray(addresses, np.uint64))
        return self._symbolizer.functions(units, self._lowest_code)

    def functions(self) -> DwarfFunctions:
        """The functions of all units."""
        if not self.present:
            return DwarfFunctions.none()
        units = np.flatnonzero(self._symbolizer.dwarf.is_compile_unit)
        return self._symbolizer.functions(units, self._lowest_code)

    def static_variables(self) -> StaticVariables:
        """Variables of all units that have an address of their own."""
        if not self.present:
            return StaticVariables.of_units([])
        return self._symbolizer.static_variables()

    @property
    def _lowest_code(self) -> int:
        """The page at which the first executable segment is linked."""
        starts = [s.address for s in self.image.layout.segments if s.executable]
        return min(starts, default=0) & ~0xFFF
