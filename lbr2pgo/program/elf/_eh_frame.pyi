from lbr2pgo.support.arrays import U64, Bytes

def read_entries(data: Bytes, address: int) -> tuple[U64, int, int]:
    """Frame description entries of `.eh_frame`, in the order of the file.

    data (k,) u8: the section, which is linked at `address`. Gives (n, 3) u64: first address and
    size of the code, and address of its LSDA (language-specific data area), 0 if it has none; how
    many entries make no sense, which are passed over; and where in the section reading ended,
    because an entry would reach behind its end.

    Source: LSB Core, "Exception Frames"; LLVM: DWARFDebugFrame.cpp parse.
    """

def landing_pads(data: Bytes, address: int, starts: U64, sizes: U64, lsdas: U64) -> U64:
    """Where exceptions land in n functions, (m,) u64 image addresses, in the order of the tables.

    data (k,) u8: the section with the functions' LSDAs, which is linked at `address`. starts,
    sizes, lsdas (n,): of each function, and of its LSDA. Of a function whose table is damaged, or
    names a landing pad outside it, those before it are given, as BOLT does.

    Source: Itanium C++ ABI: Exception Handling, "Exception Tables"; BOLT: Exceptions.cpp parseLSDA.
    """
