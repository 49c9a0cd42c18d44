from lbr2pgo.support.arrays import I32, U8, U64, Bools

NO_FUNCTION: int
"""A symbol that starts nothing: it is absolute, at a section's end, or inside a function."""
NEW_FUNCTION: int
SAME_FUNCTION: int
"""One more symbol at the start of a function."""
SECONDARY_ENTRY: int
"""A function's symbol inside a function, which BOLT takes out of its table of symbols."""

def symbol_roles(
    address: U64,
    size: U64,
    body_size: U64,
    section: I32,
    is_function: U8,
    is_label: U8,
    sections: U64,
) -> U8:
    """What each symbol is to BOLT's functions (BOLT: RewriteInstance.cpp, discoverFileObjects).

    All (n,), ascending by address. body_size: bytes of a function that starts there; section: a
    row of sections (s, 2), which holds their starts and ends, or -1; is_label: untyped and local.
    """

def function_limits(
    start: U64, size: U64, section: U64, address: U64, symbol_size: U64, is_label: U8
) -> tuple[U64, Bools]:
    """Where each function ends at the latest (BOLT: adjustFunctionBoundaries).

    Functions: start, size (n,) and section (n, 2), start and end of the section that holds them;
    symbols: the other three (m,); both ascending. Also which symbols (m,) are secondary entries.
    """
