"""`Program`: everything known of one ELF file, each part worked out when it is asked for.

What few ask for is also loaded then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.patches import Patches, read_patches
from lbr2pgo.program.code.regions import Functions, build_functions, code_ranges, cut
from lbr2pgo.program.elf.debug_files import DebugFiles
from lbr2pgo.program.elf.eh_frame import read_frames
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.kernel import anchored
from lbr2pgo.program.elf.plt import stub_names
from lbr2pgo.program.elf.symbols import Symbols, has_symbol_table, read_symbols
from lbr2pgo.program.pseudo_probes import PseudoProbes, open_probes
from lbr2pgo.support.addresses import (
    ByteRanges,
    ImageAddress,
    PlacedAddress,
    PlacedAddresses,
    image_array,
)
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import distinct

if TYPE_CHECKING:
    from lbr2pgo.program.code.cfg import FunctionCFG, FunctionCFGs
    from lbr2pgo.program.dwarf.debug_info import CodeInfo
    from lbr2pgo.program.elf.eh_frame import FrameRanges

_AT_ONCE = 4096
"""Regions that are decoded together: of a large program the instructions would take gigabytes."""


class Program:
    """One ELF file with its symbols, functions, instructions and control-flow graphs."""

    def __init__(self, image: Image | str | os.PathLike[str]) -> None:
        """Of an image, or of a path; raises InputError as `Image.open` does."""
        self.image = anchored(image if isinstance(image, Image) else Image.open(Path(image)))
        self._decoded = InstructionTable.empty()

    @classmethod
    def open(cls, path: str | Path) -> Program:
        """Open an ELF file; raises InputError as `Image.open` does."""
        return cls(path)

    def __repr__(self) -> str:
        return f"<Program {self.image.path}, build-id {self.image.build_id}>"

    def debug_info(self) -> CodeInfo:
        """The program's debug information, of which nothing is decoded yet."""
        from lbr2pgo.program.dwarf.debug_info import DebugInfo

        return DebugInfo(self.debug_files)

    def file_of(self, address: PlacedAddress) -> tuple[Program, ImageAddress]:
        """The file that a placed address is of, and the address there."""
        return self, ImageAddress(address)

    @cached_property
    def debug_files(self) -> DebugFiles:
        """The files with what was split off this one."""
        return DebugFiles(self.image)

    @cached_property
    def symbols(self) -> Symbols:
        """Symbols of the file, or of the debug file that was split off it.

        Where neither has a symbol table, functions that the debug information knows are symbols.
        """
        found = read_symbols(self.image, self.debug_files.holder(has_symbol_table))
        if found.are_complete:
            return found
        from lbr2pgo.program.dwarf.debug_info import DebugInfo

        debug = DebugInfo(self.debug_files)
        known = debug.functions()
        return found.with_functions(known.ranges, [known.names[i] for i in known.function.tolist()])

    def address_of(self, name: str) -> ImageAddress | None:
        """Image address of a symbol, None if there is none of this name."""
        row = self.symbols.by_name(name)
        return None if row is None else ImageAddress(int(self.symbols.start[row]))

    @cached_property
    def functions(self) -> Functions:
        """Functions that symbols name.

        One without a size ends before the next entry of a linkage table: it may be one itself.
        """
        pieces = cut(self._code, image_array(self._stubs))
        return build_functions(self.symbols, pieces)

    @cached_property
    def regions(self) -> Functions:
        """All code: as `functions`, and one without a symbol for each piece in between.

        Entries of linkage tables are such pieces, and named after the functions they lead to. In a
        stripped program such pieces are cut where its unwind table says that functions are.
        """
        cuts = None
        if not self.symbols.are_complete:
            frames = read_frames(self.image)
            cuts = distinct(np.concatenate([frames.start, frames.start + frames.size]))
        return self.functions.with_gaps(self._code, cuts, self._stubs)

    @cached_property
    def _code(self) -> ByteRanges:
        return code_ranges(self.image)

    @cached_property
    def _stubs(self) -> dict[int, str]:
        return stub_names(self.image, self.symbols)

    @cached_property
    def probes(self) -> PseudoProbes:
        """Pseudo probes of the file, or of the debug file that was split off it."""
        return open_probes(self.debug_files, self.symbols)

    @cached_property
    def patches(self) -> Patches:
        """Instructions that a kernel changes while it runs."""
        return read_patches(self.image)

    @cached_property
    def frame_ranges(self) -> FrameRanges:
        """Where the frame pointer points to the running function's frame."""
        from lbr2pgo.program.elf.eh_frame import read_frame_ranges

        return read_frame_ranges(self.image)

    def instructions_for(self, addresses: PlacedAddresses) -> InstructionTable:
        """Instructions of the regions that hold these addresses, fragments and parents included.

        Addresses outside the code are passed over. What is decoded once is kept.
        """
        regions = self._families_of(addresses)
        self._decode(regions)
        if len(regions) == np.count_nonzero(self._is_decoded):
            return self._decoded
        return self._decoded.within(self.regions.ranges.take(regions))

    def instructions_once(self, addresses: PlacedAddresses) -> InstructionTable:
        """The same, but what is decoded for it is not kept."""
        regions = self._families_of(addresses)
        known = self._is_decoded[regions]
        if known.all():
            return self.instructions_for(addresses)
        kept = self._decoded.within(self.regions.ranges.take(regions[known]))
        return kept.merged(self._decode_new(regions[~known]))

    def instructions_with(self, addresses: PlacedAddresses) -> InstructionTable:
        """All that is decoded already, and the same; what is decoded for it is not kept."""
        regions = self._families_of(addresses)
        missing = regions[~self._is_decoded[regions]]
        return self._decoded.merged(self._decode_new(missing)) if len(missing) else self._decoded

    def _families_of(self, addresses: PlacedAddresses) -> I64:
        found = distinct(self.regions.containing(addresses))
        return self.regions.families(found[found >= 0])

    @cached_property
    def branches(self) -> InstructionTable:
        """Every instruction that is not `OTHER`: all code is decoded for them, and not kept."""
        pieces = np.array_split(np.arange(len(self.regions)), len(self.regions) // _AT_ONCE + 1)
        return reduce(InstructionTable.merged, map(self._branches_in, pieces))

    def _branches_in(self, regions: I64) -> InstructionTable:
        table = self._decode_new(regions)
        return table.take(np.flatnonzero(table.kind != Kind.OTHER))

    def cfg(
        self, region: int, indirect_targets: Mapping[int, Sequence[int]] | None = None
    ) -> FunctionCFG:
        """Control-flow graph of `regions[region]`, see `build_cfgs`."""
        (cfg,) = self.cfgs(np.array([region]), indirect_targets or {}).each()
        return cfg

    def cfgs(self, regions: I64, indirect_targets: Mapping[int, Sequence[int]]) -> FunctionCFGs:
        """Those of several of different families, see `build_cfgs`."""
        from lbr2pgo.program.code.cfg import build_cfgs

        family = self.regions.families(regions)
        known = self._is_decoded[family].all()
        instructions = self._decoded if known else self._decode_new(family)
        return build_cfgs(instructions, self.regions, regions, indirect_targets)

    def _decode(self, regions: I64) -> None:
        missing = regions[~self._is_decoded[regions]]
        if len(missing):
            self._decoded = self._decoded.merged(self._decode_new(missing))
            self._is_decoded[missing] = True

    def _decode_new(self, regions: I64) -> InstructionTable:
        table = decode(self.image, self.regions.ranges.take(regions))
        return self.patches.applied(table) if self.image.layout.anchors else table

    def health(self) -> dict[str, int]:
        """What of the file can't be used, or had to be mended: a reason in words, and how many."""
        own = {**self.image.health(), **self.symbols.health, **self.functions.health}
        return {**own, **self.debug_files.health()}

    @cached_property
    def _is_decoded(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.regions), dtype=bool)
