"""`Architecture`: all that the program room knows of one kind of processor, in one record.

Each architecture has a module of its own beside this one, and a line in `registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    import capstone

PADDING = 16
"""A decoder may look this far past an instruction's start without checking."""


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Bytes of some ranges, laid one after another, and the instructions found in them."""

    data: U8
    """All bytes, and `PADDING` zeros behind them."""
    offset: I64
    """(n,): where in `data` each instruction starts."""
    size: U8
    """(n,)"""
    address: PlacedAddresses
    """(n,)"""


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """How instructions pass control on; arrays of n rows."""

    kind: U8
    """`Kind`"""
    target: PlacedAddresses
    has_target: Bools


@dataclass(frozen=True, slots=True)
class Relocations:
    """Numbers of relocation types, from the psABI of the architecture."""

    relative: int
    """The loader stores an address of the image."""
    irelative: int
    """The loader stores what a function of the image chooses."""
    references: tuple[int, ...]
    """They store where something is."""
    jump_tables: tuple[int, ...] = ()
    """They store a distance, which in data is an entry of a jump table; () if such distances are
    also used otherwise."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One kind of processor."""

    name: str
    """As messages call it."""
    elf_machine: int
    """`e_machine` of its ELF files (EM_*)."""
    uname: tuple[str, ...]
    """What `uname -m`, and so a recording, may call it; the usual name first."""
    sweep: Callable[[U8, list[int]], tuple[I64, U8]]
    """Offsets and sizes of the instructions in each piece of some bytes between two bounds."""
    control_flow: Callable[[MachineCode], ControlFlow]
    """What instructions do to control flow."""
    are_slow: Callable[[MachineCode], Bools]
    """Which instructions take tens of cycles, so that what follows waits for them."""
    disassembler: Callable[[], capstone.Cs]
    """Makes what writes instructions as the machine's objdump does."""
    unknown: Callable[[bytes], str]
    """What stands for the bytes of an instruction that it does not know."""
    plt_slots: Callable[[bytes, int, int], Iterator[tuple[int, int]]]
    """Addresses of the entries of a procedure linkage table and of the slots that they jump
    through, from its bytes, its address and the usual size of an entry."""
    relocations: Relocations
    frame_pointer: int
    """The register that a frame is found by, as DWARF numbers it."""
    instruction_size: int | None = None
    """Of all instructions, in bytes; None where they are of any size."""
    makes_frame: tuple[int, int] | None = None
    """Mask and value of the instruction that points this register to the new frame, where call
    frame information may not say so; None where it does."""
    is_relaxed: bool = False
    """Whether the linker shortens instructions, so that no distance is known before."""
    repeats_newest: bool = False
    """Whether some of its branch recorders record the newest branch twice."""
    records_behind_calls: bool = False
    """Whether its branch recorder names, for a system call, the instruction behind it."""
    why_no_block_maps: str | None = None
    """Why clang writes none of its programs and what to do instead; None where it does."""
    mapping_symbols: tuple[bytes, ...] = ()
    """How symbols begin that only say whether code or data follows, or mark a place for the
    assembler; a NUL is the name's end."""
