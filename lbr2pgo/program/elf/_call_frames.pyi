from lbr2pgo.support.arrays import U64, Bytes

NOT_MADE: int
"""The frame-pointer register holds what the caller left there."""
SAVED: int
"""The caller's is on the stack, but the frame is not found by the register."""
MADE: int
"""The frame is found by the register."""

def frame_rows(data: Bytes, address: int, is_debug: bool, register: int) -> U64:
    """What call frame information says of the frame-pointer register at each instruction.

    data (k,) u8: `.eh_frame`, which is linked at `address`, or `.debug_frame`; register: its DWARF
    number. Gives (n, 4) u64: half-open ranges of addresses, what is so there (NOT_MADE…), and the
    start of the function; in the order of the file, without ranges of one function that follow
    each other and are alike. Of an entry that is damaged, or uses what is not known, what is before
    that is given.

    Source: DWARF 5, 6.4; LLVM: DWARFUnwindTable.cpp parseRows.
    """
